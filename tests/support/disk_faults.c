/* Fails or kills a process at its n-th call that touches a folder, native code included; loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, FAIL_ONCE, FAIL_ON, KILL, SHORT };

static char root[PATH_MAX];
static volatile int mode = OFF, fault = EIO, traces = -1, counts_memory = 0;
static volatile long at = 0, seen = 0;

void faults_arm(const char *folder, int new_mode, long new_at, int error, int trace, int memory)
{
    mode = OFF;
    snprintf(root, sizeof root, "%s", folder);
    at = new_at, fault = error, traces = trace, counts_memory = memory, seen = 0;
    mode = new_mode;
}

long faults_seen(void) { mode = OFF; return seen; }

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_inside(const char *path) { return strncmp(path, root, strlen(root)) == 0; }

static int fd_inside(int fd, char *path)
{
    char link[64];
    int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    errno = kept;
    if (n < 0)
        return 0;
    path[n] = 0;
    return is_inside(path);
}

static int at_inside(int folder, const char *path, char *whole)
{
    if (path[0] == '/' || folder == AT_FDCWD) {
        snprintf(whole, PATH_MAX, "%s", path);
        return is_inside(whole);
    }
    if (!fd_inside(folder, whole))
        return 0;
    size_t n = strlen(whole);
    snprintf(whole + n, PATH_MAX - n, "/%s", path);
    return 1;
}

/* Returns 0: go on, 1: fail, 2: write half. */
static int meet(const char *call, const char *path)
{
    long n = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (mode == COUNT && traces >= 0) {
        int kept = errno;
        dprintf(traces, "%s %s\n", call, path);
        errno = kept;
    }
    if (mode == KILL && n == at) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    if ((mode == FAIL_ONCE && n == at) || (mode == FAIL_ON && n >= at)) {
        errno = fault;
        return 1;
    }
    return mode == SHORT && n == at ? 2 : 0;
}

#define ON (mode != OFF && !counts_memory)

#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...)                            \
    {                                                                     \
        static int (*next)(const char *, int, ...);                       \
        if (!next) next = real(#name);                                    \
        va_list rest;                                                     \
        va_start(rest, flags);                                            \
        int bits = va_arg(rest, int);                                     \
        va_end(rest);                                                     \
        if (ON && is_inside(path) && meet("open", path) == 1) return -1;  \
        return next(path, flags, bits);                                   \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                      \
    int name(int folder, const char *path, int flags, ...)                                \
    {                                                                                     \
        static int (*next)(int, const char *, int, ...);                                  \
        char whole[PATH_MAX];                                                             \
        if (!next) next = real(#name);                                                    \
        va_list rest;                                                                     \
        va_start(rest, flags);                                                            \
        int bits = va_arg(rest, int);                                                     \
        va_end(rest);                                                                     \
        if (ON && at_inside(folder, path, whole) && meet("open", whole) == 1) return -1;  \
        return next(folder, path, flags, bits);                                           \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRITE(name, parameters, given, half)                     \
    ssize_t name parameters                                            \
    {                                                                  \
        static ssize_t(*next) parameters;                              \
        char path[PATH_MAX];                                           \
        if (!next) next = real(#name);                                 \
        if (ON && fd_inside(fd, path)) switch (meet("write", path)) {  \
            case 1: return -1;                                         \
            case 2: n = half;                                          \
        }                                                              \
        return next given;                                             \
    }
WRITE(write, (int fd, const void *data, size_t n), (fd, data, n), (n + 1) / 2)
WRITE(pwrite, (int fd, const void *data, size_t n, off_t where), (fd, data, n, where), (n + 1) / 2)
WRITE(pwrite64, (int fd, const void *data, size_t n, off64_t where), (fd, data, n, where), (n + 1) / 2)
WRITE(writev, (int fd, const struct iovec *data, int n), (fd, data, n), (n + 1) / 2)

#define OF_FD(name, call, parameters, given)                                     \
    int name parameters                                                          \
    {                                                                            \
        static int(*next) parameters;                                            \
        char path[PATH_MAX];                                                     \
        if (!next) next = real(#name);                                           \
        if (ON && fd_inside(fd, path) && meet(call, path) == 1) return -1;       \
        return next given;                                                       \
    }
OF_FD(fsync, "fsync", (int fd), (fd))
OF_FD(fdatasync, "fsync", (int fd), (fd))
OF_FD(ftruncate, "truncate", (int fd, off_t n), (fd, n))
OF_FD(ftruncate64, "truncate", (int fd, off64_t n), (fd, n))

#define OF_PATH(name, call, parameters, given)                                   \
    int name parameters                                                          \
    {                                                                            \
        static int(*next) parameters;                                            \
        if (!next) next = real(#name);                                           \
        if (ON && is_inside(path) && meet(call, path) == 1) return -1;           \
        return next given;                                                       \
    }
OF_PATH(mkdir, "mkdir", (const char *path, mode_t bits), (path, bits))
OF_PATH(rmdir, "rmdir", (const char *path), (path))
OF_PATH(unlink, "unlink", (const char *path), (path))
OF_PATH(rename, "rename", (const char *path, const char *to), (path, to))
OF_PATH(link, "link", (const char *path, const char *to), (path, to))

#define OF_PLACE(name, call, parameters, given)                                              \
    int name parameters                                                                      \
    {                                                                                        \
        static int(*next) parameters;                                                        \
        char whole[PATH_MAX];                                                                \
        if (!next) next = real(#name);                                                       \
        if (ON && at_inside(folder, path, whole) && meet(call, whole) == 1) return -1;       \
        return next given;                                                                   \
    }
OF_PLACE(mkdirat, "mkdir", (int folder, const char *path, mode_t bits), (folder, path, bits))
OF_PLACE(unlinkat, "unlink", (int folder, const char *path, int flags), (folder, path, flags))
OF_PLACE(renameat, "rename", (int folder, const char *path, int other, const char *to), (folder, path, other, to))
OF_PLACE(renameat2, "rename", (int folder, const char *path, int other, const char *to, unsigned flags),
         (folder, path, other, to, flags))

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static int lacks_memory(void)
{
    return mode != OFF && counts_memory && meet("allocate", "memory") == 1;
}

void *malloc(size_t n) { return lacks_memory() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return lacks_memory() ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t n) { return lacks_memory() ? NULL : __libc_realloc(old, n); }
