from queryveil.methods.baselines import Pseudonymise as Pseudonymise
from queryveil.methods.baselines import QueryThreshold as QueryThreshold
from queryveil.methods.baselines import TokenHash as TokenHash
from queryveil.methods.clump import Clump as Clump
from queryveil.methods.clump import Partition as Partition
from queryveil.methods.dp import Choice as Choice
from queryveil.methods.dp import Dp as Dp
from queryveil.methods.dp import Mechanism as Mechanism
from queryveil.methods.kdelta import Kdelta as Kdelta
from queryveil.methods.km import Km as Km
from queryveil.methods.km import Target as Target
from queryveil.methods.plink import Grouping as Grouping
from queryveil.methods.plink import Plink as Plink
from queryveil.methods.practice import BraveWdp as BraveWdp
from queryveil.methods.practice import Ddg2026 as Ddg2026
from queryveil.methods.practice import Ec2026 as Ec2026
from queryveil.methods.practice import Google2024 as Google2024
from queryveil.methods.practice import Mozilla as Mozilla
from queryveil.methods.remains import Remains as Remains
from queryveil.methods.remains import warn_if_little as warn_if_little
from queryveil.methods.remains import way_out_of_no_counts as way_out_of_no_counts
from queryveil.methods.remains import what_is_left as what_is_left
from queryveil.methods.swap import Swap as Swap

__all__: list[str]
