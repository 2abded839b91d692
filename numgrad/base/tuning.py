"""Tuning constants: sizes at which the library changes its way, and what each was measured against.

They decide about time and memory, and, but where that is said, not about results. A name stands
for one number in the whole library. "Not measured" means that nobody compared other values.
"""

from __future__ import annotations

# --- the least work that a thread takes ----------------------------------------------------------
# All of them against `benchmarks/crossover.py`, where that is said: some 100 us of work, twice what
# it costs to hand it over. Fewer run where they are.

THREAD_BYTES_ARITHMETIC = 1 << 21  #: of an elementwise result: crossover, "arithmetic"
THREAD_ELEMENTS_ARITHMETIC = THREAD_BYTES_ARITHMETIC // 8  #: the same, of float64
THREAD_BYTES_FUNCTIONS = 1 << 20  #: the same, where exp, sin ... are computed: "functions"
THREAD_ELEMENTS_SUM = 1 << 18  #: of what a reduction reads: "reductions"
THREAD_ELEMENTS_TWO_PASSES = 1 << 16  #: of variances, which read twice: not measured by themselves
THREAD_ELEMENTS_EXPONENTIALS = 1 << 15  #: of softmax and logsumexp: crossover, "softmax"
THREAD_ELEMENTS_SCAN = 1 << 16  #: of cumulative sums and the like: crossover, "scans"
THREAD_ELEMENTS_ARGEXTREMA = 1 << 16  #: of argmax and the like: not measured by themselves
THREAD_ELEMENTS_ACCUMULATE = 1 << 17  #: of gradients that are added up: not measured
THREAD_ELEMENTS_GATHER = 1 << 17  #: of strided copies: not measured
THREAD_VALUES_SEARCH = 1 << 13  #: that are looked for in sorted rows: not measured
THREAD_ELEMENTS_WINDOWS = 1 << 16  #: that pooling and resampling read: not measured
THREAD_ELEMENTS_ALIGNMENTS = 1 << 13  #: frames times states of ctc_loss: not measured
THREAD_ELEMENTS_UNIT_VECTORS = 1 << 15  #: of compiled Jacobians' results: not measured
THREAD_ADDITIONS_JIT = 1 << 19  #: of a compiled loop, by `numgrad.jit.ir.cost`: not measured

# --- few elements --------------------------------------------------------------------------------

#: Elements up to which callers that know their operands to be plain call a kernel's loop
#: themselves, and operands that do not lie flat are written out, which spares compiled variants.
#: They make one part of any reduction. Not measured: `benchmarks/few_elements.py` is far below it.
FEW_ELEMENTS = 1 << 12
#: Arrays up to which `numpy.array` stacks small ones: of 2, 4, 8 with 4 numbers it took .5, .6 and
#: .9 us, and `numpy.concatenate` .8, .9 and 1.1.
NESTED_PARTS = 16
#: Positions in several dims from which on they are counted in the flattened array: of 300 both ways
#: took 1.5 us, of 3,000 NumPy's 7.9 and this 2.9, of 100,000 244 and 67.
FLATTENED_POSITIONS = 300
#: Elements up to which NumPy makes a strided copy: neither threads nor blocks pay. Not measured.
NUMPY_COPY_ELEMENTS = 1 << 16
#: Multiplications up to which a loop is quicker than a call of BLAS, in a dispatcher. Not measured.
LOOP_PRODUCT_TERMS = 1 << 15
#: Elements of a loop that a dispatcher has in itself, for LLVM to take apart. Not measured.
INLINED_ELEMENTS = 1 << 10
#: Flops, by the table of scalar operations, from which on kernels call one machine code instead of
#: each having its own: LLVM takes .1 s for `zeta` and .8 s for the gradient of `betainc`.
SHARED_FLOPS = 500
#: Statements of a dispatcher that is inlined into the loops that call it. Not measured.
INLINED_STATEMENTS = 380
#: The part of the elements up to which the k greatest are found without sorting all. Not measured.
TOPK_PART = 8
#: Directions from which on `func` gives a traced function a loop. Not measured.
LOOPED_DIRECTIONS = 4
#: Operands up to which `einsum` tries every order: 180 of them. Not measured.
EINSUM_EVERY_ORDER = 5
#: Rows of matrices that are factored in one loop over the batch; LAPACK takes larger ones. See
#: `benchmarks/linalg.py`.
SMALL_MATRIX = 16
#: Rows of matrices that are written out, element by element: LLVM's time grows with their cube.
UNROLLED_MATRIX = 4
#: Matrices of a batch from which on eager mode has code for their size, which takes 50 (2 x 2) to
#: 330 ms (4 x 4) to compile. Measured: of batches of 15, against loops for all sizes, it saves 2 of
#: 10 us of `det` and 5 of 14 of `inv`, and takes 2 us more than 10 for `solve` and 5 more than 5
#: for `cholesky`; of 1,000 it takes a third of the time.
UNROLLED_BATCH = 16
#: Columns of LU that are factored one by one, and rows of triangular systems that are solved so,
#: between products of matrices. Not measured.
PANEL = 32
TRIANGULAR_BLOCK = 32
#: Columns of such a block that are solved together, so that they stay in the nearest cache.
#: Measured: 32 rows of 500 columns took 40 us at once, 31 us by 64 or 128 columns.
TRIANGULAR_STRIPE = 64
#: Bytes of arrays whose Fourier transforms are shared among threads. Measured: at 1 MiB two took as
#: long as one.
PARALLEL_FOURIER_BYTES = 1 << 22
#: How many complex numbers, a power of two, are transformed by two rounds of short transforms.
#: Measured: of 2**16 SciPy's library takes as long in double precision, and a kernel that was never
#: compiled takes .7 s; of 2**20 that library takes 1.4 (complex64) and 1.7 times as long.
LONG_FOURIER = 1 << 18
#: Bytes of the vectors that such a round transforms side by side. Measured: with 2**17, pages of
#: memory are visited twice as often, which took 1.1 times as long; with 2**20, 1.2 times.
FOURIER_ROUND_BYTES = 1 << 18
#: Bytes of the columns that a convolution makes of some samples, before it multiplies them: not
#: measured.
CONVOLUTION_BYTES = 1 << 21

# --- memory --------------------------------------------------------------------------------------

#: Bytes from which on buffers are recycled: where glibc by default maps fresh memory and gives
#: freed memory back. Measured there: allocating and filling takes 3 times as long as on a recycled
#: buffer, at 1 MiB 6 times.
RECYCLED_BYTES = 1 << 17
#: Fewer elements than this are below it, whatever their type: the usual case.
RECYCLED_ELEMENTS = RECYCLED_BYTES // 16
#: Elements of a leaf that has a gradient already from which on it is fed without delay: otherwise
#: the new gradients of all leaves would be in memory beside the present ones. Not measured.
UNDELAYED_LEAF_ELEMENTS = 1 << 16
#: Elements of blocks that a compiled loop has on the stack. Not measured.
STACK_ELEMENTS = 1 << 15
#: Bytes of room that a dispatcher has on the stack. Not measured.
STACK_BYTES = 1 << 13

# --- blocks, which stay in the nearest cache -----------------------------------------------------

#: Numbers that lie one after the other and are summed before their sum is added to others; so many
#: a compiled loop computes before it adds them up. Decides the order of sums, and so their bits
#: (`numgrad.kernels.reduce.order`). Not measured.
SUM_BLOCK = 1024
#: Among how many lanes they are dealt out: of float64, 8 of the widest registers. Decides bits.
#: Measured: 1024 lanes in memory took half as long again for arrays in the cache.
SUM_LANES = 64
#: Numbers that fill registers where several sums lie side by side, with what is left of the last
#: one. Decides among how many lanes rows are dealt out, and bits. Measured with `SUM_ROWS`:
#: compiled sums over rows of 100 took a tenth longer with 512 and 64, eager ones of 20 a fifth
#: longer with 128 and 256.
SUM_WIDTH = 256
#: Rows that a lane adds up one after the other, and rows of a block at least. Decide bits.
SUM_DEPTH = 16
SUM_ROWS = 256
#: Columns at most that a thread takes of an elementwise loop that sums what it computes, in whole
#: blocks of sums. Not measured.
SUMMING_COLUMNS = 1 << 14
#: Rows of a part of variances and logsumexp, at least: with `numgrad.kernels.reduce.order.TILE`
#: columns, what a core's own cache holds. Decides bits. Not measured.
MOMENT_ROWS = 64
#: Rows that are multiplied in one go, element by element. Not measured.
PRODUCT_ROWS = 4096
#: Angles that one look decides about: whether any is far from 0. Not measured.
ANGLE_BLOCK = 1024
#: Blocks that a loop with sines hands on on the stack before they serve again: 256 KiB of float64.
#: Measured: where they served again from the first on, 400 operations took half as long again to
#: compile.
ANGLE_ROOMS = 32
#: Operations that loops between sines do again rather than store and load; functions they never do
#: again. Measured: stored, three such loops ran in .7 of the time, and 1,000 operations with 140
#: sines compile in 2.4 s instead of 11.5.
FEW_OPERATIONS = 4
#: Elements of a row up to which functions such as ``exp`` are computed of several rows at once.
#: Measured: logsumexp of rows of 10 took a third and of 52 .7 of the time, from 68 on the same.
NARROW_ROW = 64
#: Elements of a row up to which its loop is compiled for just so many. Measured: exp of differences
#: of points in space took a third of the time.
FEW_COLUMNS = 8
#: Elements of a row that are searched for a greater one before its place is. Not measured.
ARGEXTREMA_BLOCK = 32
#: Elements of a row whose exponentials and logarithms are taken at once. Not measured.
RECURRENCE_BLOCK = 256

# --- what is remembered --------------------------------------------------------------------------

#: Calls that an operation remembers; when there are more, all are found out anew. Not measured.
REMEMBERED_CALLS = 1 << 10
#: Traces that a compiled function keeps, the latest used. Not measured.
KEPT_TRACES = 256
#: Traces that are kept for arguments that differ in their strides only. Not measured.
KEPT_LAYOUTS = 16

# --- limits of what is compiled ------------------------------------------------------------------

#: Rounds of a vectorised loop that are computed in turns. Measured: most loops are up to a fifth
#: faster than with 2.
INTERLEAVED_ROUNDS = 4
#: Rows that an unrolled loop computes in multiples of. Not measured.
UNROLLED_LANES = 4
#: Rounds of moving views, each of which may show another that can move. Not measured.
VIEW_ROUNDS = 8
#: Calls of a trace after which its sizes are compiled in, if it computes little: so many, and more
#: for more operations than `SPECIALISED_OPERATIONS`, since compiling takes longer the more there
#: are. With more than `UNSPECIALISED_OPERATIONS` it would hold a call up for seconds. Not measured.
SPECIALISED_AFTER_CALLS = 100
SPECIALISED_OPERATIONS = 50
UNSPECIALISED_OPERATIONS = 100
#: Parts of a joined value that are computed apart: each is a loop of its own. Measured: gradients
#: of three layers of seven weights take .65 of the time with 64 instead of 16, of four .45, and
#: compile in .8 of it.
JOINED_PARTS = 64
#: Elements that a reduction in a trace has at most to be written out, and how many results there
#: are at least. Measured: distances of 300 points in 12 and 16 dims took a fifth of the time with
#: 16 of what they took with 8, which left them loops, and compiled as fast. Results: not measured.
SPELLED_ELEMENTS = 16
SPELLED_RESULTS = 32
#: Parts of a join from which on a sum over it is not taken apart. Not measured.
SUMMED_PARTS = 64
#: Views of one value that are moved in front of what computes it: as many as a reduction that is
#: written out has elements.
MOVED_VIEWS = SPELLED_ELEMENTS
#: Bytes of an array that a traced function makes up to which it is looked for among those that it
#: made before. Not measured.
COMPARED_BYTES = 1 << 12
#: Work of a compiled loop between two looks at whether Ctrl-C was pressed, in operations on numbers
#: (some ten milliseconds), and what a call of the interpreter counts. Measured: a look takes .1 us.
WORK_BETWEEN_SIGNALS = 1 << 24
INTERPRETED_WORK = 1 << 12
#: Numbers of a range up to which NumPy counts them: a kernel is not looked up faster. Not measured.
COUNTED_BY_NUMPY = 4096
#: Passes inside of each other that one stack takes, with the user's own calls between; they are
#: counted in ``modes.depth``. Not measured.
NESTED_PASSES = 25
#: Frames of Python's stack that compiling or loading a kernel may take beyond the recursion limit,
#: and what keeping signals away from that takes within it. Not measured: some times what they take.
FRAMES_OF_COMPILERS = 2_000
FRAMES_OF_SHIELDS = 30
#: How many bytes ahead of what is folded memory is fetched, in arrays of so many bytes at least.
#: Measured on one thread (Sapphire Rapids): `amax` of 16 million float32 takes 0.79 of the time
#: without, of rows 0.77, `count_nonzero` 0.8, `sum` 1.0, of bytes 0.5; smaller arrays are in a
#: core's own cache, where asking took `sum` of 10,000 float64 a tenth longer in the same loop.
PREFETCH_DISTANCE = 4096
PREFETCHED_BYTES = 1 << 20
