"""Random numbers: arguments and errors as in PyTorch, distributions, seeds, threads, gradients."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import numgrad as ng
from tests.ops.expressions import check_same

CALLS = r"""
torch.rand(2).shape
torch.rand((2,3)).shape
torch.rand(2,requires_grad=True).requires_grad
torch.rand(2,dtype=torch.int64)
torch.rand(2,dtype=torch.bool)
torch.rand(2,dtype=torch.complex64).dtype
torch.rand(-1)
torch.rand(2.5)
torch.rand(2,out=torch.zeros(3)).shape
torch.randn(2,dtype=torch.int64)
torch.randn(2,dtype=torch.complex64).dtype
torch.randn(-1)
torch.randint(3,(2,)).dtype
torch.randint(0,3,(2,)).dtype
torch.randint(3,3,(2,))
torch.randint(5,3,(2,))
torch.randint(0,(2,))
torch.randint(3)
torch.randint(0,3,2)
torch.randint(0,300,(2,),dtype=torch.uint8)
torch.randint(0,2**40,(2,),dtype=torch.int32)
torch.randint(0,2,(2,),dtype=torch.bool).dtype
torch.randint(0,3,(2,),dtype=torch.bool)
torch.randint(0,3,(2,),dtype=torch.float32).dtype
torch.randint(0,3,(2,),dtype=torch.complex64)
torch.randint(0.5,3,(2,))
torch.randint(0,3.,(2,))
torch.randint(low=0,high=3,size=(2,)).shape
torch.randint(high=3,size=(2,)).shape
torch.randint(0,3,(2,),requires_grad=True)
torch.randint(-5,-2,(100,)).max().item() < -2
torch.randint_like(torch.ones(2),3).dtype
torch.randint_like(torch.ones(2),1,3).shape
torch.randint_like(torch.ones(2),3,3)
torch.randint_like(torch.ones(2),low=1,high=3).shape
torch.randperm(5).dtype
torch.randperm(5,dtype=torch.float32).dtype
torch.randperm(-1)
torch.randperm(2.5)
torch.randperm(0)
torch.randperm(300,dtype=torch.uint8)
torch.randperm(5,dtype=torch.complex64)
torch.randperm(5,dtype=torch.bool)
torch.randperm(5,requires_grad=True)
torch.normal(0.,1.,(2,)).dtype
torch.normal(0,1,(2,)).dtype
torch.normal(0.,-1.,(2,))
torch.normal(0.,1.)
torch.normal(torch.zeros(2),torch.ones(2)).shape
torch.normal(torch.zeros(2),torch.ones(3,1)).shape
torch.normal(torch.zeros(2)).shape
torch.normal(torch.zeros(2),2.).shape
torch.normal(2.,torch.ones(2)).shape
torch.normal(torch.zeros(2),-torch.ones(2))
torch.normal(torch.zeros(2),-1.)
torch.normal(2.,-torch.ones(2))
torch.normal(torch.zeros(2,dtype=torch.int64),torch.ones(2))
torch.normal(torch.zeros(2),torch.ones(2,dtype=torch.float64)).dtype
torch.normal(torch.zeros(2,dtype=torch.float64),torch.ones(2)).dtype
torch.normal(torch.zeros(2,dtype=torch.int64),1.)
torch.normal(1.,torch.ones(2,dtype=torch.int64))
torch.normal(torch.zeros(2,requires_grad=True),torch.ones(2)).grad_fn.name()
torch.normal(torch.zeros(2,requires_grad=True),1.).grad_fn.name()
torch.normal(1.,torch.zeros(2,requires_grad=True)).grad_fn.name()
torch.normal(torch.zeros(2),torch.zeros(2,dtype=torch.complex64))
torch.normal(torch.zeros(2,dtype=torch.complex64),torch.ones(2)).dtype
torch.normal(0.,1.,(2,),dtype=torch.int64)
torch.normal(0.,1.,(2,),dtype=torch.float64).dtype
torch.normal(0.,1.,size=(2,)).dtype
torch.normal(mean=0.,std=1.,size=(2,)).dtype
torch.normal(mean=torch.zeros(2),std=1.).shape
torch.normal(0.,1.,2)
torch.normal('a',1.,(2,))
torch.normal(0.,1.,(2,),requires_grad=True).requires_grad
torch.bernoulli(torch.tensor([0.,1.]))
torch.bernoulli(torch.tensor([0,1]))
torch.bernoulli(torch.tensor([False,True]))
torch.bernoulli(torch.tensor([0.,1.],requires_grad=True)).grad_fn.name()
torch.bernoulli(torch.zeros(3),1.)
torch.bernoulli(torch.zeros(3,dtype=torch.int64),1.)
torch.bernoulli(torch.zeros(3),1.5)
torch.bernoulli(torch.zeros(3),p=1)
torch.bernoulli(0.5)
torch.rand_like(torch.ones(2)).shape
torch.rand_like(torch.ones(2,dtype=torch.int64))
torch.rand_like(torch.ones(2,dtype=torch.int64),dtype=torch.float32).dtype
torch.randn_like(torch.ones(2,dtype=torch.int64))
torch.randn_like(torch.ones(2,dtype=torch.complex64)).dtype
torch.rand_like(3)
torch.rand_like(torch.ones(2),requires_grad=True).requires_grad
torch.ones(2).uniform_(2,1)
torch.ones(2).uniform_(0,inf)
torch.ones(2).uniform_(0,nan)
torch.ones(2).uniform_(1,1)
torch.ones(2,dtype=torch.int64).uniform_()
torch.ones(2,dtype=torch.bool).uniform_()
torch.ones(2).uniform_(-1e300,1e300)
torch.ones(2).uniform_(-3e38,3e38)
torch.ones(2,requires_grad=True).uniform_()
(torch.ones(2,requires_grad=True)*2).uniform_().grad_fn.name()
torch.ones(2).normal_(0,-1)
torch.ones(2,dtype=torch.int64).normal_()
torch.ones(2,dtype=torch.complex64).normal_().dtype
torch.ones(2,requires_grad=True).normal_()
(torch.ones(2,requires_grad=True)*2).normal_().grad_fn.name()
torch.ones(2).bernoulli_(1)
torch.ones(2).bernoulli_(1.5)
torch.ones(2).bernoulli_(-1)
torch.ones(2).bernoulli_(nan)
torch.ones(2,dtype=torch.int64).bernoulli_(1)
torch.ones(2,dtype=torch.bool).bernoulli_(1)
torch.ones(2,dtype=torch.complex64).bernoulli_(1)
torch.ones(2).bernoulli_(torch.tensor([0.,1.]))
torch.ones(2).bernoulli_(torch.tensor(1.))
torch.ones(2).bernoulli_(torch.tensor([0.,1.,1.]))
torch.ones(2).bernoulli_(torch.tensor([0,1]))
torch.ones(2,3).bernoulli_(torch.tensor([0.,1.,1.]))
(torch.ones(2,requires_grad=True)*2).bernoulli_().grad_fn.name()
torch.ones(2).random_(3,3)
torch.ones(2).random_(5).shape
torch.ones(2,dtype=torch.uint8).random_(300)
torch.ones(2,dtype=torch.uint8).random_(-1,3)
torch.ones(2,dtype=torch.bool).random_().dtype
torch.ones(2,dtype=torch.complex64).random_()
torch.ones(2).random_(0)
torch.ones(2).random_(2,None).shape
torch.ones(2).random_(2.5)
torch.ones(2).random_(0,2**24).shape
(torch.ones(2,requires_grad=True)*2).random_().grad_fn.name()
torch.ones(2).exponential_(0)
torch.ones(2).exponential_(-1)
torch.ones(2).exponential_(nan)
torch.ones(2).exponential_(inf)
torch.ones(2,dtype=torch.int64).exponential_()
torch.ones(2,dtype=torch.complex64).exponential_()
(torch.ones(2,requires_grad=True)*2).exponential_().grad_fn.name()
torch.ones(2).log_normal_().shape
torch.ones(2).cauchy_().shape
torch.ones(2).geometric_(0.5).shape
torch.ones(2).geometric_(1.5)
torch.manual_seed(3).initial_seed()
torch.manual_seed(-1).initial_seed()
torch.manual_seed(-2**63).initial_seed()
torch.manual_seed(2**63).initial_seed()
torch.manual_seed(2**64-1).initial_seed()
torch.manual_seed(2**64)
torch.manual_seed(-2**63-1)
torch.manual_seed('a')
torch.manual_seed(None)
torch.manual_seed(True).initial_seed()
torch.manual_seed(torch.tensor(3)).initial_seed()
type(torch.seed())
torch.Generator().initial_seed()
torch.Generator().manual_seed(2**64)
torch.Generator().manual_seed(-1).initial_seed()
torch.Generator().manual_seed(1.5)
torch.Generator(device='cpu').manual_seed(3).get_state().dtype
torch.Generator().manual_seed(3).clone_state().initial_seed()
torch.Generator(3)
torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(3)
torch.get_rng_state().dtype
torch.ones(2,dtype=torch.int64).cauchy_()
torch.ones(2).cauchy_(0,0)
torch.ones(2).log_normal_(1,0)
torch.ones(2,dtype=torch.int64).log_normal_()
torch.ones(2,dtype=torch.int64).geometric_(0.5).dtype
torch.ones(2,dtype=torch.complex64).geometric_(0.5).dtype
torch.ones(2).geometric_(1)
(torch.ones(2,requires_grad=True)*2).geometric_(0.5).grad_fn.name()
(torch.ones(2,requires_grad=True)*2).log_normal_().grad_fn.name()
(torch.ones(2,requires_grad=True)*2).cauchy_().grad_fn.name()
(torch.ones(2,requires_grad=True)*2).random_(3).grad_fn.name()
(torch.ones(2,requires_grad=True)*2).random_(1,3).grad_fn.name()
(torch.ones(2,requires_grad=True)*2).bernoulli_(torch.tensor([0.,1])).grad_fn.name()
torch.ones(2).bernoulli_(torch.ones(2,2))
torch.randint(0,10,(2,),dtype=torch.int8,out=torch.zeros(2))
torch.ones(2,dtype=torch.int8).random_(300)
torch.ones(2,dtype=torch.int16).random_(2**20)
torch.ones(2).random_(to=1)
torch.randint(1,3,(2,),dtype=torch.float64).dtype
torch.ones(2,dtype=torch.bool).random_(0,3)
torch.rand(2,generator=torch.Generator().manual_seed(1)).shape
torch.ones(2,dtype=torch.complex64).uniform_(2,2)
""".strip().splitlines()

# What gives other numbers in every call: a name, how it is drawn, and its distribution.
CONTINUOUS = {
    "rand": (lambda g, d: ng.rand(20000, generator=g, dtype=d), stats.uniform()),
    "randn": (lambda g, d: ng.randn(20000, generator=g, dtype=d), stats.norm()),
    "rand_like": (
        lambda g, d: ng.rand_like(ng.empty(20000, dtype=d), generator=g),
        stats.uniform(),
    ),
    "randn_like": (lambda g, d: ng.randn_like(ng.empty(20000, dtype=d), generator=g), stats.norm()),
    "normal": (
        lambda g, d: ng.normal(ng.full((20000,), 3.0, dtype=d), 2.0, generator=g),
        stats.norm(3, 2),
    ),
    "normal of numbers": (
        lambda g, d: ng.normal(3.0, 2.0, (20000,), generator=g, dtype=d),
        stats.norm(3, 2),
    ),
    "uniform_": (
        lambda g, d: ng.empty(20000, dtype=d).uniform_(-2, 3, generator=g),
        stats.uniform(-2, 5),
    ),
    "normal_": (
        lambda g, d: ng.empty(20000, dtype=d).normal_(3, 2, generator=g),
        stats.norm(3, 2),
    ),
    "exponential_": (
        lambda g, d: ng.empty(20000, dtype=d).exponential_(2, generator=g),
        stats.expon(scale=0.5),
    ),
    "log_normal_": (
        lambda g, d: ng.empty(20000, dtype=d).log_normal_(0.5, 0.25, generator=g),
        stats.lognorm(0.25, scale=np.exp(0.5)),
    ),
    "cauchy_": (
        lambda g, d: ng.empty(20000, dtype=d).cauchy_(1, 2, generator=g),
        stats.cauchy(1, 2),
    ),
}
DISCRETE = {
    "randint": (lambda g: ng.randint(-2, 3, (20000,), generator=g), stats.randint(-2, 3)),
    "randint of floats": (
        lambda g: ng.randint(-2, 3, (20000,), generator=g, dtype=ng.float32),
        stats.randint(-2, 3),
    ),
    "randint_like": (
        lambda g: ng.randint_like(ng.empty(20000, dtype=ng.uint8), 2, 5, generator=g),
        stats.randint(2, 5),
    ),
    "random_": (lambda g: ng.empty(20000).random_(4, generator=g), stats.randint(0, 4)),
    "bernoulli": (
        lambda g: ng.bernoulli(ng.full((20000,), 0.3), generator=g),
        stats.bernoulli(0.3),
    ),
    "bernoulli of a number": (
        lambda g: ng.bernoulli(ng.empty(20000), 0.3, generator=g),
        stats.bernoulli(0.3),
    ),
    "bernoulli_": (lambda g: ng.empty(20000).bernoulli_(0.3, generator=g), stats.bernoulli(0.3)),
    "bernoulli_ of a tensor": (
        lambda g: ng.empty(20000).bernoulli_(ng.tensor(0.3), generator=g),
        stats.bernoulli(0.3),
    ),
    "geometric_": (lambda g: ng.empty(20000).geometric_(0.4, generator=g), stats.geom(0.4)),
}
DRAWS = {
    **{name: lambda g, f=f: f(g, ng.float32) for name, (f, _) in CONTINUOUS.items()},
    **{name: f for name, (f, _) in DISCRETE.items()},
    "randperm": lambda g: ng.randperm(20000, generator=g),
    "complex rand": lambda g: ng.rand(20000, generator=g, dtype=ng.complex64),
    "complex randn": lambda g: ng.randn(20000, generator=g, dtype=ng.complex128),
}
FILLS = {
    "UniformBackward0": lambda x: x.uniform_(),
    "NormalBackward0": lambda x: x.normal_(),
    "BernoulliBackward2": lambda x: x.bernoulli_(),
    "BernoulliBackward1": lambda x: x.bernoulli_(ng.full((3,), 0.5)),
    "RandomBackward2": lambda x: x.random_(),
    "RandomBackward1": lambda x: x.random_(5),
    "RandomBackward0": lambda x: x.random_(2, 5),
    "ExponentialBackward0": lambda x: x.exponential_(),
    "LogNormalBackward0": lambda x: x.log_normal_(),
    "CauchyBackward0": lambda x: x.cauchy_(),
    "GeometricBackward0": lambda x: x.geometric_(0.5),
}


@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("expression", CALLS)
def test_arguments_and_errors_as_in_pytorch(torch, expression):
    check_same(torch, expression)


@pytest.mark.parametrize("dtype", [ng.float32, ng.float64], ids=repr)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, dtype):
    draw, distribution = CONTINUOUS[name]
    drawn = draw(ng.Generator().manual_seed(0), dtype)
    assert drawn.dtype is dtype
    # With a fixed seed this is no gamble; a wrong distribution has a p-value of practically 0.
    assert stats.kstest(drawn.numpy().astype(float), distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, distribution = DISCRETE[name]
    values, counts = np.unique(draw(ng.Generator().manual_seed(0)).numpy(), return_counts=True)
    chances = distribution.pmf(values.astype(int))
    expected = chances * 20000
    kept = expected > 20
    assert chances.sum() > 0.999
    rest = 20000 - expected[kept].sum()
    observed = np.append(counts[kept], 20000 - counts[kept].sum())
    if rest < 1:
        observed, rest = observed[:-1], None
    wanted = expected[kept] if rest is None else np.append(expected[kept], rest)
    wanted *= observed.sum() / wanted.sum()
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_complex_numbers_have_half_of_the_variance_in_each_part():
    drawn = ng.randn(20000, dtype=ng.complex128, generator=ng.Generator().manual_seed(0)).numpy()
    for part in (drawn.real, drawn.imag):
        assert stats.kstest(part, stats.norm(0, np.sqrt(0.5)).cdf).pvalue > 1e-3


def test_randperm_is_a_permutation():
    assert sorted(ng.randperm(100).tolist()) == list(range(100))
    assert ng.randperm(100).tolist() != ng.randperm(100).tolist()


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_again_and_another_seed_others(name):
    first, again, other = (
        DRAWS[name](ng.Generator().manual_seed(seed)).tolist() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_seeds_give_the_same_numbers_in_every_version():
    drawn = ng.rand(2, dtype=ng.float64, generator=ng.Generator().manual_seed(0)).tolist()
    assert drawn == np.random.Generator(np.random.PCG64(0)).random(2).tolist()


def test_manual_seed_starts_the_default_generator():
    generator = ng.manual_seed(5)
    first = ng.rand(3).tolist()
    ng.manual_seed(5)
    assert ng.rand(3).tolist() == first
    assert ng.initial_seed() == generator.initial_seed() == 5


@given(st.integers(-(2**63), 2**64 - 1))
def test_initial_seed_is_the_seed_counted_from_0(seed):
    assert ng.Generator().manual_seed(seed).initial_seed() == seed % 2**64


@given(st.integers(0, 2**64 - 1), st.integers(0, 5))
def test_a_state_brings_back_the_numbers_and_the_seed(seed, count):
    generator = ng.Generator().manual_seed(seed)
    ng.rand(count, generator=generator)  # an odd number of them leaves half a number behind
    state = generator.get_state()
    wanted = ng.rand(3, generator=generator).tolist()
    copies = [
        ng.Generator().set_state(state),
        pickle.loads(pickle.dumps(ng.Generator().set_state(state))),
        ng.Generator().set_state(state).clone_state(),
    ]
    for other in copies:
        assert other.initial_seed() == seed
        assert ng.rand(3, generator=other).tolist() == wanted


def test_threads_may_share_a_generator():
    generator = ng.Generator().manual_seed(0)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: ng.rand(1000, generator=generator).numpy(), range(8)))
    ng_all = ng.rand(8000, generator=ng.Generator().manual_seed(0)).numpy()
    drawn = np.concatenate(parts)
    assert len(np.unique(drawn)) > 7990
    assert drawn.min() >= 0
    # Each call draws as a whole, so that the parts make up the one stream in some order.
    whole = {tuple(part) for part in ng_all.reshape(8, 1000)}
    assert {tuple(part) for part in parts} == whole


@given(st.floats(-1e6, 1e6, width=32), st.floats(0, 0.5, width=32))
def test_uniform_does_not_reach_the_upper_end(low, width):
    high = float(np.float32(low + width))
    drawn = ng.empty(500).uniform_(low, high).numpy()
    assert drawn.min() >= low
    assert drawn.max() < high or high == low == drawn.max()


def test_float32_numbers_are_drawn_as_such():
    drawn = ng.rand(1000, generator=ng.Generator().manual_seed(0)).numpy().astype(float)
    assert (drawn * 2**24 % 1 == 0).all()


@pytest.mark.parametrize("node", FILLS)
def test_a_fill_cuts_off_the_gradient_of_what_was_there(torch, node):
    leaf = ng.ones(3, requires_grad=True)
    x = leaf * 2
    version = x._version
    assert FILLS[node](x) is x
    assert x.grad_fn.name() == node
    assert x._version == version + 1
    (x * 3).sum().backward()
    assert leaf.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_fill_of_a_view_leaves_the_rest_alone():
    leaf = ng.ones(3, requires_grad=True)
    x = leaf * 2
    x[1:].uniform_(5, 6)
    x.sum().backward()
    assert leaf.grad.tolist() == [2.0, 0.0, 0.0]
    assert x[0].item() == 2.0
    assert (x[1:] >= 5).all()


@pytest.mark.parametrize("node", FILLS)
def test_a_leaf_that_requires_grad_is_not_filled(node):
    leaf = ng.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        FILLS[node](leaf)
    with ng.no_grad():
        FILLS[node](leaf)
    assert leaf.is_leaf


def test_probabilities_and_means_get_zeros():
    p = ng.full((3,), 0.5, requires_grad=True)
    for y in (ng.bernoulli(p), ng.normal(p, p), ng.normal(p), ng.normal(0.0, p)):
        (gradient,) = ng.autograd.grad(y.sum(), [p])
        assert gradient.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [ng.uint8, ng.int8, ng.int16, ng.int32, ng.int64], ids=repr)
def test_random_without_a_range_has_all_numbers_from_0_on(dtype):
    drawn = ng.empty(50000, dtype=dtype).random_(generator=ng.Generator().manual_seed(0)).numpy()
    limit = np.iinfo(drawn.dtype).max
    assert drawn.min() >= 0
    assert drawn.max() > limit * 0.98


def test_a_foreign_state_is_refused():
    with pytest.raises(RuntimeError, match="found the input RNG state size to be 3"):
        ng.set_rng_state(ng.zeros(3, dtype=ng.uint8))


def test_probabilities_out_of_range_are_refused():
    for p in (1.5, -0.5, float("nan")):
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true"):
            ng.bernoulli(ng.tensor([0.5, p]))


@pytest.mark.parametrize("name", ["uniform_", "random_"])
def test_from_is_given_as_pytorch_calls_it(name):
    for low in range(-2, 3):
        x = getattr(ng.ones(5), name)(**{"from": low, "to": low + 1})
        assert bool(((low <= x) & (x <= low + 1)).all())
    with pytest.raises(TypeError, match="unexpected keyword argument 'beyond'"):
        getattr(ng.ones(5), name)(**{"from": 0, "beyond": 1})
    with pytest.raises(TypeError, match="multiple values for argument 'from'"):
        getattr(ng.ones(5), name)(1, 2, **{"from": 1})
