"""Decompositions of matrices and their derivatives, compared with eager.

Rounding: eliminations of n columns, of matrices whose condition is small, to 1e-4 of the largest element.
"""

import pytest

torch = pytest.importorskip("torch")

from pytorch_models import agrees, model_of  # noqa: E402 # there is torch

from relayc.tools.dynamo import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("shape", [(2, 1, 5, 3), (3, 40), (0, 3, 3)])
def test_lu(shape):
    def function(a):
        lu, pivots, info = torch.linalg.lu_factor_ex(a)
        return lu, pivots, info, *torch.lu_unpack(lu, pivots)

    agrees(model_of(function), (torch.randn(shape),), tolerance=TOLERANCE)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 5, 3)])
def test_parts_of_a_decomposition(shape):
    pivots = torch.ones(2, 3, dtype=torch.int32)
    agrees(model_of(lambda lu, pivots: torch.lu_unpack(lu, pivots, unpack_pivots=False)[1:]), (torch.randn(shape), pivots))


def test_lu_of_a_singular_matrix():
    a = torch.randn(8, 4, 4)
    a[1, :, 2] = a[1, :, 1]  # their pivot is 0
    a[1] = a[1].sign() * 2
    a[2] = 0
    a[3:7] = torch.ones(4, 4).triu()
    a[range(3, 7), range(4), range(4)] = 0  # each pivot by itself, which later columns find again but for the last two
    a[7] = torch.diag(torch.tensor([2.0, 0, 3, 0]))  # the first of two counts
    agrees(model_of(lambda a: (torch.linalg.lu_factor_ex(a), torch.linalg.lu(a))), (a,), tolerance=TOLERANCE)


def test_systems_of_a_decomposition():
    """From both sides, of matrices and of transposed matrices."""

    def function(a, b):
        lu = torch.linalg.lu_factor(a)
        return [torch.linalg.lu_solve(*lu, b, left=left, adjoint=adjoint) for left in (True, False) for adjoint in (True, False)]

    agrees(model_of(function), (torch.randn(2, 1, 4, 4), torch.randn(3, 4, 4)), tolerance=TOLERANCE)


def solve(a, b):
    return torch.linalg.solve(a, b) + torch.linalg.solve(a.mT, b)


def determinants(a, b):
    """Of a matrix and of one that is laid out the other way."""
    return b.sum() * torch.linalg.det(a) + torch.linalg.det((a * 2).mT) + torch.linalg.slogdet(a)[1] + torch.linalg.slogdet(a.mT)[1]


@pytest.mark.parametrize("function", [solve, determinants])
def test_derivatives(function):
    torch._dynamo.reset()
    a, b = (torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    wanted, found = (torch.autograd.grad(f(a, b).sin().sum(), (a, b)) for f in (function, torch.compile(function, backend=backend)))
    torch.testing.assert_close(found, wanted)
