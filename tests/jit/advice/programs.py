"""Functions as users write them, with a branch or loop on a traced value, to be written anew.

`SHOWN` are those for which the error shows code, and `SAID` those for which it says why there is
none, with a part of the words.
"""

from __future__ import annotations

import textwrap

__all__ = ["SAID", "SHOWN"]


def _programs(text: str) -> dict[str, str]:
    """Return programs by their names, which stand in lines of their own behind a #."""
    found = {}
    for part in textwrap.dedent(text).split("\n# ")[1:]:
        name, _, source = part.partition("\n")
        found[name] = source.rstrip() + "\n"
    return found


SHOWN = _programs(
    """
    # augmented
    def program(x):
        n = 0
        y = x * 1
        while y.abs().max() > 0.1:
            y /= 2
            n += 1
        return y * n

    # bool of a condition
    def program(x):
        if bool(x.sum() > 0):
            x = x * 2
        return x

    # item in a condition
    def program(x):
        if x.sum().item() > 0.1:
            x = x * 2
        return x

    # float in a condition
    def program(x):
        if float(x.sum()) > 0.1:
            x = x * 2
        else:
            x = x - 1
        return x

    # int in a condition
    def program(x):
        if int(x.sum()) == 2:
            x = x * 2
        return x

    # truth of a float
    def program(x):
        s = x.sum()
        if s:
            x = x / s
        return x

    # not of a float
    def program(x):
        s = x.sum()
        if not s:
            x = x + 1
        return x

    # truth of an expression
    def program(x):
        if x.sum() - 2.5:
            x = x + 1
        return x

    # only within the body
    def program(x):
        while x.abs().max() > 1:
            half = x / 2
            x = half
        half = x * 3
        return half

    # range of a float
    def program(x):
        for i in range(int(x.abs().sum())):
            x = x * 0.5 + i
        return x

    # range of an item
    def program(x):
        n = x.abs().sum().long()
        for i in range(1, n.item() + 1):
            x += i
        return x

    # range of a tensor
    def program(x):
        n = x.abs().sum().long()
        total = x.sum()
        for i in range(n):
            total = total + i / 3
        return total

    # range with a step
    def program(x):
        for i in range(int(x.abs().sum()), 0, -2):
            x = x + i
        return x

    # a range and its step
    def program(x):
        for i in range(int(x.abs().sum()), -1, -2):
            x = x + i
        return x

    # do while
    def program(x):
        n = 0
        while True:
            x = x / 2
            n += 1
            if x.abs().max() < 1:
                break
        return x + n

    # do while of what is within
    def program(x):
        while True:
            half = x / 2
            change = (half - x).abs().max()
            x = half
            if change < 0.5:
                break
        return x

    # break in the middle
    def program(x):
        n = 0
        while n < 5:
            x = x * 2
            if x.sum() > 5:
                break
            x = x + 1
            n = n + 1
        return x, n

    # break at once
    def program(x):
        while True:
            if x.abs().sum() < 1:
                break
            third = x / 3
            x = third + 0.01
        return x

    # break out of a for
    def program(x):
        for i in range(6):
            x = x * 1.5
            if x.sum() > 5:
                break
            x = x + i
        return x

    # break out of rows
    def program(x):
        total = x[0] * 0
        for value in x:
            if value < 0:
                break
            total = total + value
        return total

    # continue
    def program(x):
        total = x[0] * 0
        for i in range(2):
            if x[i] < 0:
                continue
            total = total + x[i]
        return total

    # continue in a while
    def program(x):
        n = 0
        while x.abs().max() > 0.3:
            x = x / 2
            if x.sum() > 0.5:
                continue
            n += 1
        return x, n

    # continue and break
    def program(x):
        total = x.sum()
        for k in range(8):
            if total < 0:
                total = total + k
                continue
            if total > 4:
                break
            total = total * 2 + 0.25
        return total

    # else of a loop
    def program(x):
        for i in range(3):
            x = x + 0.5
            if x.sum() > 4:
                break
        else:
            x = -x
        return x

    # else of a while
    def program(x):
        while x.abs().max() > 1:
            x = x / 2
        else:
            x = x + 1
        return x

    # return out of a loop
    def program(x):
        for i in range(4):
            x = x * 1.5
            if x.sum() > 5:
                return x * 10
        return -x

    # return out of a loop without end
    def program(x):
        while True:
            x = x / 2
            if x.abs().max() < 0.7:
                return x + 3

    # early return
    def program(x):
        s = x.sum()
        if s > 3:
            return x + 1
        y = x * s
        y = y - 1
        return y

    # early returns
    def program(x):
        if x.sum() > 3:
            return x + 1
        if x.sum() < 0:
            y = -x
            return y * 2
        return x

    # return in a branch of Python's
    def program(x, mode="b"):
        if mode == "b":
            if x.sum() > 1:
                return x + 1
            x = x * 2
        return x - 1

    # elif
    def program(x):
        if x.sum() > 3:
            y = x + 1
        elif x.sum() > 0:
            y = x - 1
        elif x.max() > 2:
            y = x * 3
        else:
            y = -x
        return y

    # elif behind Python's
    def program(x, mode="a"):
        y = x
        if mode == "b":
            y = x + 1
        elif x.sum() > 0:
            y = x - 1
        return y * 2

    # elif that returns behind Python's
    def program(x, mode="a"):
        if mode == "b":
            x = x + 1
        elif x.sum() > 0:
            return x - 1
        return x * 2

    # elif that returns
    def program(x):
        if x.sum() > 3:
            return x + 1
        elif x.sum() > 0:
            return x - 1
        else:
            return x * 3

    # nested
    def program(x):
        y = x
        if x.sum() > 0:
            y = x + 1
            if y.max() > 2:
                y = y * 2
            else:
                y = y - 0.5
        return y

    # branch in a loop
    def program(x):
        while x.abs().max() > 0.5:
            if x.sum() > 0:
                x = x / 2
            else:
                x = x / 3
        return x

    # loop in a branch
    def program(x):
        if x.sum() > 0:
            while x.max() > 1:
                x = x / 2
        return x

    # loop in a loop
    def program(x):
        while x.abs().max() > 0.5:
            y = x
            while y.abs().max() > 1:
                y = y / 3
            x = x / 2 + y / 100
        return x

    # branch in a loop of Python's
    def program(x):
        for i in range(4):
            if x.sum() > 2:
                x = x - 1
            else:
                x = x + i
        return x

    # a tuple is carried
    def program(x):
        state = (x, x.sum())
        while state[1].abs() > 0.5:
            state = (state[0] + 1, state[1] / 2)
        return state

    # swap
    def program(x):
        a, b = x[0], x[1]
        while (a - b).abs() > 0.1:
            a, b = b, (a + b) / 2
        return a, b

    # a dict is carried
    def program(x):
        state = {"x": x, "n": 0}
        while state["x"].abs().max() > 1:
            state = {"x": state["x"] / 2, "n": state["n"] + 1}
        return state["x"] + state["n"]

    # a float is carried
    def program(x):
        t, dt = 0.0, 0.1
        y = x.sum()
        while t < 1.0 and y < 40:
            y = y + t
            t += dt
        return y, t

    # a count that divides
    def program(x):
        n = 1
        s = x.sum()
        while s.abs() > 0.1 * n:
            s = s / 2 + 1 / (3 * n)
            n += 1
        return s, n

    # method
    class Model:
        def __init__(self):
            self.scale = 3.0

        def apply(self, x):
            if x.sum() > 1:
                return x * self.scale
            return x / self.scale

    def program(x):
        return Model().apply(x)

    # attribute
    class Model:
        pass

    def program(x):
        model = Model()
        model.w = x
        if x.sum() > 1:
            model.w = x * 2
        return model.w

    # attributes in a loop
    class Model:
        pass

    def program(x):
        model = Model()
        model.w, model.n = x, 0
        while model.w.abs().max() > 1:
            model.w = model.w / 2
            model.n += 1
        return model.w + model.n

    # item of a dict
    def program(x):
        d = {"k": x, "j": x}
        if x.sum() > 1:
            d["k"] = d["j"] * 2
        else:
            d["k"] = d["k"] - 1
        return d["k"]

    # elements
    def program(x):
        y = x.clone()
        if y.sum() > 0:
            y[0] = 7
        else:
            y[1] += 3
        return y

    # elements in a loop
    def program(x):
        y = x.clone()
        while y.abs().max() > 0.5:
            y[0] = y[1] / 2
            y[1] = y[0] / 2
        return y

    # closure
    def outer(k):
        def inner(x):
            if x.sum() > k:
                x = x - k
            return x
        return inner

    def program(x):
        return outer(1.5)(x)

    # lambda
    program = lambda x: x + 1 if x.sum() > 0 else x * 3

    # two lambdas on one line
    first, program = lambda x: x, lambda x: (x if x.sum() > 0 else -x) + (x if x[0] > 1 else 2)

    # one line
    def program(x):
        if x.sum() > 0: x = x * 2; x = x + 1
        return x

    # one line of a loop
    def program(x):
        while x.abs().max() > 1: x = x / 2
        return x

    # conditional
    def program(x):
        return x * (2.0 if x.sum() > 0 else 0.1)

    # conditional with a number
    def program(x):
        return x + (x.max() if x.sum() > 0 else 0)

    # conditional of conditionals
    def program(x):
        y = x + 1 if x.sum() > 3 else x - 1 if x.sum() > 0 else x * 3
        return y

    # conditional in a comprehension
    def program(x):
        return [v * 2 if v > 0 else v * 3 for v in x]

    # chain
    def program(x):
        return x * (0 < x.sum() < 3)

    # chain in a branch
    def program(x):
        if 0 < x.sum() < x.max() * 2 < 9:
            x = x + 1
        return x

    # chain of what draws
    def draw(x):
        return x.sum() + ng.rand(()) * 0

    def program(x):
        return x + (0 < draw(x) < 3)

    # not
    def program(x):
        return x * (not x.sum() > 0)

    # or with None
    def program(x, limit=None):
        if limit is None or x.sum() > limit:
            x = x + 1
        if limit is not None and x.sum() > 1 or x.max() > 2:
            x = x * 2
        return x

    # and with a list
    def program(x):
        extra = [1.0]
        if x.sum() > 0 and extra:
            x = x + extra[0]
        return x

    # list and a condition
    def program(x):
        extra = [1.0]
        if extra and x.sum() > 0:
            x = x + extra[0]
        return x

    # or as a value
    def program(x):
        y = x.sum() or x.max() + 1
        return x + y

    # and as a value
    def program(x):
        y = x.sum() and 1 / x.sum()
        return x + y

    # max
    def program(x):
        return x / max(x.max(), 1.0)

    # min of two
    def program(x):
        return x * min(x[0], x[1] * 2)

    # max of three
    def program(x):
        return x + max(x[0], x[1], x.sum())

    # max of a list
    def program(x):
        values = [x[0], x[1], x.sum()]
        return x + max(values)

    # max in a branch
    def program(x):
        if max(x[0], x[1]) > 1:
            x = x * 2
        return x

    # sorted
    def program(x):
        a, b = sorted([x[0], x[1]], reverse=True)
        return a - b

    # any
    def program(x):
        if any(v > 1 for v in x):
            x = x + 1
        return x

    # all
    def program(x):
        return x * all([x[0] > 0, x[1] > 0])

    # named in a test
    def program(x):
        while (largest := x.abs().max()) > 1:
            x = x / largest / 2
        return x

    # in place
    def program(x):
        y = x.clone()
        if y.sum() > 0:
            y.mul_(2).add_(1)
            y.sub_(3)
        return y

    # a flag of one's own
    def program(x):
        done = False
        n = 0
        while not done:
            x = x / 2
            n = n + 1
            done = x.abs().max() < 0.5
        return x + n

    # a flag that is set in a branch
    def program(x):
        found = False
        for i in range(3):
            if x.sum() > 2 + i:
                found = True
        return x * found

    # several at once
    def program(x):
        z = x + 1
        if 0 < x.sum() < 3 and not x.max() > 1.5:
            y = x * z
            z = y + z
        else:
            y = z
        return y * z

    # two loops with one temporary
    def program(x):
        while x.abs().max() > 2:
            step = x / 3
            x = x - step
        while x.abs().max() > 1:
            step = x / 2
            x = x - step
        return x

    # of names
    def program(x):
        is_big, is_small = x.max() > 1, x.min() < 0
        if is_big and not is_small:
            x = x * 2
        return x

    # of a call
    def is_big(x):
        return x.abs().max() > 1

    def program(x):
        if is_big(x):
            x = x * 2
            x = x + 1
        while is_big(x):
            x = x / 2
        return x

    # a flag of Python's
    def program(x):
        flag = False
        if not flag and x.sum() > 0:
            x = x + 1
        return x

    # several are counted
    def program(x):
        y = x
        for i in range(1, x.abs().sum().long().item()):
            x = x * i + y
            y = x - 1
        return x + y

    # on two lines
    def program(x):
        n = 0
        while (x.abs().max() >
               0.5) and n < 5:
            half = x / 2
            x, n = half, n + 1
        return x + n

    # a loop of Python's in a branch
    def program(x):
        z = x + 1
        if x.sum() > 0:
            for _ in range(3):
                w = z * 2
                z = w + 1
        return z

    # with in a branch
    def program(x):
        if x.sum() > 0:
            with ng.no_grad():
                x = x * 2
        return x
    """
)
SAID = {
    name: tuple(source.split("\n", 1))
    for name, source in _programs(
        """
    # raise
    check numbers outside
    def program(x):
        if x.sum() > 5:
            raise ValueError
        return x

    # assert
    an assertion is not recorded
    def program(x):
        assert x.sum() > 5
        return x

    # filter
    may not go by numbers
    def program(x):
        return [k for k in range(2) if x.sum() > k]

    # append
    would be done once
    def program(x):
        out = [x]
        if x.sum() > 0:
            out.append(x * 2)
        return out

    # first in the loop
    `y` first gets a value in the loop
    def program(x):
        while x.abs().max() > 1:
            y = x * 2
            x = y / 4
        return x + y

    # None before
    `best` is None
    def program(x):
        best = None
        if x.sum() > 0:
            best = x
        return x if best is None else best

    # in one branch
    `y` gets a value in one branch alone
    def program(x):
        if x.sum() > 0:
            y = x * 2
        return y

    # sum that begins with a number
    `total` is a number of Python's
    def program(x):
        total = 0
        while x.abs().max() > 1:
            total = total + x.sum()
            x = x / 2
        return total

    # closed over
    reads the variable `x`
    def program(x):
        def is_big():
            return x.abs().max() > 1
        while is_big():
            x = x / 2
        return x

    # two names
    whose memory is that of `z`
    def program(x):
        y = x * 1
        z = y
        if x.sum() > 0:
            y += 1
        return z

    # list by a counter
    takes an item by a number
    def program(x):
        weights = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        for i in range(int(x.abs().sum())):
            x = x + weights[i]
        return x

    # function of a number
    takes a number
    def program(x):
        if math.sqrt(x.sum() ** 2) > 1:
            x = x * 2
        return x

    # nothing is returned
    it returns nothing on one way
    def program(x):
        if x.sum() > 0:
            return
        return x

    # text
    is no tensor
    def program(x):
        return "big" if x.sum() > 1 else "small"

    # key
    stack the values
    def program(x):
        return sorted([x[0], x[1]], key=lambda v: -v)

    # in
    comparisons of its own
    def program(x):
        if x.sum() in (1, 2):
            x = x + 1
        return x

    # a method that reads it
    may read what is stored
    class Model:
        def norm(self):
            return self.w.sum()

    def program(x):
        model = Model()
        model.w = x
        if x.sum() > 0:
            model.w = x * model.norm()
        return model.w

    # two loops left at once
    left in several ways
    def program(x):
        while True:
            x = x / 2
            if x.sum() < 0:
                return x
            if x.abs().max() < 1:
                break
        return x * 2
    """
    ).items()
}
