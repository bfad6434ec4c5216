"""relay -> te: a compute rule for each operator, one module per operator family; importing the package registers them."""

from relayc.pipelines.te import activation as activation
from relayc.pipelines.te import attention as attention
from relayc.pipelines.te import binary as binary
from relayc.pipelines.te import columns as columns
from relayc.pipelines.te import conv as conv
from relayc.pipelines.te import conv_transpose as conv_transpose
from relayc.pipelines.te import coupling as coupling
from relayc.pipelines.te import create as create
from relayc.pipelines.te import dense as dense
from relayc.pipelines.te import determinant as determinant
from relayc.pipelines.te import image as image
from relayc.pipelines.te import indexing as indexing
from relayc.pipelines.te import norm as norm
from relayc.pipelines.te import pool as pool
from relayc.pipelines.te import random as random
from relayc.pipelines.te import reduce as reduce
from relayc.pipelines.te import regions as regions
from relayc.pipelines.te import sampling as sampling
from relayc.pipelines.te import scan as scan
from relayc.pipelines.te import search as search
from relayc.pipelines.te import sort as sort
from relayc.pipelines.te import transform as transform
from relayc.pipelines.te import trees as trees
from relayc.pipelines.te import unary as unary
from relayc.pipelines.te import vision as vision
from relayc.pipelines.te import winograd as winograd
