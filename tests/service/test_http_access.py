"""The service where others can reach it: tokens for all that is asked, TLS, and secrets that no command line shows."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.streams import keyed_settings
from tests.support.waiting import patience, until

from queryveil.cli import main
from queryveil.errors import BadFile, BadParameter
from queryveil.service.http.addresses import Address, HttpLimits, TlsFiles
from queryveil.service.http.server import HttpSink, HttpSource, serve_monitor
from queryveil.service.pipeline.urls import find_address
from queryveil.service.ports import Stats

TOKEN = "made-up-token-0123456789"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def listening(address: Address, **how: ssl.SSLContext) -> Iterator[httpx.Client]:
    """Listen without a service behind."""
    source, sink = HttpSource(address), HttpSink(address)
    source.open(position=None, keys=())
    sink.open(delivered=0, n_bytes=0)
    scheme = "http" if address.tls is None else "https"
    try:
        with httpx.Client(base_url=f"{scheme}://127.0.0.1:{source.port}", timeout=patience(), **how) as client:  # type: ignore[arg-type]
            yield client
    finally:
        source.close()
        sink.close()


class Quiet:
    """A service to which nothing happens."""

    settings = keyed_settings()

    def stats(self) -> Stats:
        return Stats(is_ready=True)


def test_where_others_can_ask_counts_need_the_token_too() -> None:
    with listening(Address(host="0.0.0.0", port=0, token=TOKEN.encode())) as client:
        for path in ("/stats", "/metrics", "/example"):
            refused = client.get(path)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert client.get(path, headers=RIGHT).status_code in (200, 503)
        for path in ("/healthz", "/", "/page.js"):
            assert client.get(path).status_code == 200


def test_a_monitor_that_others_can_ask_needs_a_token() -> None:
    service = Quiet()
    with (
        pytest.raises(BadParameter, match="no token; name one with --token FILE or in QUERYVEIL_TOKEN"),
        serve_monitor(service, Address(host="0.0.0.0", port=0)),
    ):
        pass
    address = Address(host="0.0.0.0", port=0, token=TOKEN.encode())
    with serve_monitor(service, address) as port:
        assert httpx.get(f"http://127.0.0.1:{port}/metrics").status_code == 401
        assert httpx.get(f"http://127.0.0.1:{port}/metrics", headers=RIGHT).status_code == 200
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200


def test_the_token_may_come_from_the_environment_and_a_file_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUERYVEIL_TOKEN", f" {TOKEN}\n")
    assert Address.parse("http://127.0.0.1:1").token == TOKEN.encode()
    (tmp_path / "token").write_text("another-made-up-token")
    assert Address.parse(f"http://127.0.0.1:1?token={tmp_path / 'token'}").token == b"another-made-up-token"
    for wrong in ("short", "two words of some length", "ünfall-ünfall-ünfall"):
        monkeypatch.setenv("QUERYVEIL_TOKEN", wrong)
        with pytest.raises(BadParameter, match=r"^QUERYVEIL_TOKEN must be one ASCII word of at least 16") as refused:
            Address.parse("http://127.0.0.1:1")
        assert wrong not in str(refused.value)


def test_an_address_may_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "redis://me:opensesame@127.0.0.1:6379/0"
    file = tmp_path / "address"
    file.touch(0o600)
    file.write_text(secret + "\n")
    assert find_address(f"@{file}", what="source") == secret
    monkeypatch.setenv("MADE_UP_ADDRESS", secret)
    assert find_address("env:MADE_UP_ADDRESS", what="source") == secret
    with pytest.raises(BadParameter, match=r"^sink must be env: and a variable of the environment that holds"):
        find_address("env:MADE_UP_NOTHING", what="sink")
    file.write_text("")
    with pytest.raises(BadFile, match="there is no address in this file; write it there in one line"):
        find_address(f"@{file}", what="source")
    file.chmod(0o644)
    with pytest.raises(BadFile, match="others can read or write this secret; chmod 600 it, or make a new one"):
        find_address(f"@{file}", what="source")
    with pytest.raises(BadFile, match="it cannot be read: No such file or directory"):
        find_address(f"@{file}.no", what="source")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """Make a certificate for 127.0.0.1 that signs itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made = TlsFiles(cert=folder / "cert.pem", key=folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=queryveil.example", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(made.key), "-out", str(made.cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    made.key.chmod(0o600)
    return made


def trusting(files: TlsFiles) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.cert))


def test_with_a_certificate_it_answers_by_tls_alone(files: TlsFiles) -> None:
    with listening(Address(port=0, tls=files), verify=trusting(files)) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        with pytest.raises(httpx.TransportError):
            httpx.get(str(client.base_url.join("/healthz")).replace("https", "http"))
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as plain:
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            with old.wrap_socket(plain) as found:
                assert found.version() in ("TLSv1.2", "TLSv1.3")


def test_who_begins_no_handshake_counts_as_a_connection_and_is_ended(files: TlsFiles) -> None:
    limits = HttpLimits(header_seconds=0.3, max_connections=4, max_per_address=4)
    with listening(Address(port=0, tls=files, limits=limits), verify=trusting(files)) as client:
        port = client.base_url.port or 0
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=patience()) for _ in range(9)]
        try:
            assert client.get("/healthz").status_code == 200
            for each in waiting:
                try:
                    assert each.recv(1) == b""
                except ConnectionResetError:
                    continue
        finally:
            for each in waiting:
                each.close()
        until(lambda: client.get("/healthz").status_code == 200)


def test_an_address_names_its_certificate(files: TlsFiles) -> None:
    address = Address.parse(f"https://127.0.0.1:1?cert={files.cert}&key={files.key}")
    assert address.tls == files
    for url in (
        "https://127.0.0.1:1",
        f"https://127.0.0.1:1?cert={files.cert}",
        f"http://127.0.0.1:1?cert={files.cert}&key={files.key}",
    ):
        with pytest.raises(BadParameter, match="or https://HOST:PORT"):
            Address.parse(url)


def test_wrong_files_for_tls_are_one_clear_line(files: TlsFiles, tmp_path: Path) -> None:
    open_key, text, locked, other = (tmp_path / name for name in ("open.pem", "notes.txt", "locked.pem", "other.pem"))
    open_key.write_bytes(files.key.read_bytes())
    open_key.chmod(0o644)
    text.write_text("kestrel lantern")
    text.chmod(0o600)
    make = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out"]
    subprocess.run([*make, str(other)], check=True, capture_output=True)
    lock = ["openssl", "ec", "-aes256", "-passout", "pass:made-up", "-in", str(other), "-out", str(locked)]
    subprocess.run(lock, check=True, capture_output=True)
    for made in (other, locked):
        made.chmod(0o600)
    lines = {
        (files.cert, open_key): "others can read or write this secret; chmod 600 it, or make a new one",
        (files.cert, text): "this is no key in PEM; name the file with --tls-key",
        (text, files.key): "this is no certificate in PEM; name the file with --tls-cert",
        (files.cert, other): "this is not the key of cert.pem; name the one that belongs to it",
        (files.cert, locked): "this key has a passphrase; write it without one, for its owner alone",
        (files.cert, tmp_path / "nosuch"): "the key cannot be read: No such file or directory",
        (tmp_path / "nosuch", files.key): "the certificate cannot be read: No such file or directory",
    }
    for (cert, key), line in lines.items():
        with pytest.raises(BadFile) as refused:
            TlsFiles(cert=cert, key=key).context()
        assert str(refused.value).endswith(f": {line}")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["serve", "--tls-cert", "cert.pem"], "tls must be named by both, or by none, got one of --tls-cert and"),
        (["serve", "--tls-cert", "cert.pem", "--tls-key", "key.pem"], "cert.pem: the certificate cannot be read"),
        (["serve", "--max-requests", "0"], "max_requests must be a whole number from 1 to 100000, got 0"),
        (["stream", "--metrics", "0.0.0.0:0"], "host must be 127.0.0.1 where there is no token; name one with --token"),
        (["stream", "--store", "@nosuch"], "nosuch: it cannot be read: No such file or directory"),
        (["profiles", "env:MADE_UP_NOTHING"], "store must be env: and a variable of the environment"),
    ],
)
def test_wrong_settings_of_access_are_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUERYVEIL_TOKEN", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(options)
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert err.startswith(f"queryveil: {line}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
