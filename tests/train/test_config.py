"""Settings: where they come from, which one wins, and what is refused."""

import os
from pathlib import Path

import pytest

from gnn_ibp.errors import SettingsError
from gnn_ibp.train.config import CONFIGS, Config, config_from_args, read_toml


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "small.toml").write_text(
        'epochs = 7\nhidden = 32\nfanout = "5,4"\nundirected = true\nno-cache = true\n'
    )
    return folder


def test_defaults_train_the_synthetic_set(tmp_path: Path) -> None:
    assert config_from_args([], tmp_path) == Config()
    assert Config().dataset == "synthetic"


def test_config_of_the_data_set_beats_the_defaults(configs: Path) -> None:
    config = config_from_args(["--dataset", "SMALL"], configs)
    assert (config.epochs, config.hidden, config.fanout, config.batch_size) == (7, 32, (5, 4), 1024)


def test_file_beats_the_config_of_the_data_set(configs: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('dataset = "small"\nepochs = 3\nfanout = [6, -1]\nbatch_size = 9\nno_cache = false\n')
    config = config_from_args([f"--config={file}"], configs)
    assert (config.epochs, config.hidden, config.fanout, config.batch_size) == (3, 32, (6, -1), 9)
    assert config.undirected
    assert not config.no_cache


def test_command_line_beats_all(configs: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("epochs = 3\n")
    args = [
        "--dataset",
        "small",
        "--config",
        str(file),
        "--epochs",
        "2",
        "--no-undirected",
        "--fanout",
        "-1,2",
    ]
    config = config_from_args(args, configs)
    assert (config.epochs, config.undirected, config.fanout) == (2, False, (-1, 2))


def test_configs_that_come_with_the_program_are_right() -> None:
    names = [path.stem for path in CONFIGS.glob("*.toml")]
    assert "synthetic" in names
    for name in names:
        path = CONFIGS / f"{name}.toml"
        config = config_from_args(["--config", str(path)])
        needless = [key for key in read_toml(path) if getattr(config, key) == getattr(Config(), key)]
        assert not needless, f"{path} repeats defaults"
    assert config_from_args(["--dataset", "synthetic"]).cache_bytes != "auto"


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1"])
def test_devices_are_named_as_torch_names_them(device: str) -> None:
    assert config_from_args(["--device", device]).device == device


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--epocs", "3"], "did you mean '--epochs'?"),
        (["--epochs", "0"], "--epochs is 0, it must be a whole number from 1 up"),
        (["--fanout", "5,0"], "--fanout is (5, 0), it must be numbers from 1 up"),
        (["--fanout", "5;3"], "'5;3' is no list of whole numbers such as 15,10,5"),
        (["--dropout", "1"], "--dropout is 1.0, it must be at least 0 and below 1"),
        (["--lr", "nan"], "--lr is nan, it must be above 0"),
        (["--cache-bytes", "3 apples"], "--cache-bytes: cannot read '3 apples' as a size in bytes"),
        (["--device", "gpu"], "--device is gpu, it must be auto, cpu, cuda, or cuda:N"),
        (["--device", "cuda:x"], "--device is cuda:x, it must be auto, cpu, cuda, or cuda:N"),
        (["--hot-set", "degre"], "--hot-set is degre, it must be presample, degree, none"),
        (["--normalize", "rows"], "invalid choice 'rows'"),
        (["--format", "3"], "--format is 3, it must be auto, 1 or 2"),
    ],
)
def test_error_names_the_setting_and_the_remedy(args: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        config_from_args(args)
    assert message in str(error.value)
    assert "Config" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epocs = 3", "did you mean '--epochs'?"),
        ("epochs = = 3", "Invalid value"),
        ("[train]\nepochs = 3", "unknown setting '--train'"),
        ("config = 'other.toml'", "--config is other.toml, it must be given on the command line"),
        ("hot-set = false", "--hot-set is False, it must be a value: it is no switch"),
    ],
)
def test_error_in_a_file_names_the_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        config_from_args(["--config", str(file)])
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


def test_a_file_beside_a_data_set_is_no_config(tmp_path: Path, configs: Path) -> None:
    (tmp_path / "mine.toml").write_text("epochs = 77\n")
    for path in (str(tmp_path / "mine"), "../mine"):
        assert config_from_args(["--dataset", path], configs).epochs == Config.epochs


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no file"):
        config_from_args(["--config", str(tmp_path / "none.toml")])


def test_host_tier_on_the_cpu_is_refused_with_the_remedy() -> None:
    with pytest.raises(SettingsError, match=r"--host-bytes is 1GiB: .* give the memory to --cache-bytes"):
        config_from_args(["--host-bytes", "1GiB"]).check_cpu()
    for args in (["--host-bytes", "auto"], ["--host-bytes", "0KiB"], ["--host-bytes", "1GiB", "--no-cache"]):
        config_from_args(args).check_cpu()


@pytest.mark.parametrize("name", ["save", "report"])
def test_output_that_cannot_be_written_is_told_at_the_start(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=f"--{name} .* cannot be written"):
        config_from_args([f"--{name}", str(tmp_path / "none" / "file")]).check_outputs()
    config_from_args([f"--{name}", str(tmp_path / "file")]).check_outputs()


@pytest.mark.parametrize("name", ["save", "report"])
def test_output_that_would_replace_a_device_or_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match=f"--{name} .* cannot be written: it must be a file"):
        config_from_args([f"--{name}", str(tmp_path / "pipe")]).check_outputs()


@pytest.mark.parametrize("name", ["save", "report"])
def test_outputs_take_no_place_of_inputs(tmp_path: Path, name: str) -> None:
    data, config, ids = (tmp_path / file for file in ("graph.npz", "mine.toml", "hot.npy"))
    for file in (data, config, ids):
        file.touch()
    args = ["--dataset", f"npz:{data}", "--config", str(config), "--hot-set", str(ids)]
    for file in (data, config, ids):
        with pytest.raises(SettingsError, match=f"--{name} .*{file.name} is a file that the run reads"):
            config_from_args([*args, f"--{name}", str(file)]).check_outputs()
    config_from_args([*args, f"--{name}", str(tmp_path / "out")]).check_outputs()


@pytest.mark.parametrize("flag", ["--save", "--report", "--checkpoint"])
def test_outputs_lie_in_no_data_set(tmp_path: Path, flag: str) -> None:
    (tmp_path / "meta.json").touch()
    config_from_args([flag, str(tmp_path / "out")]).check_outputs()
    (tmp_path / "indptr.npy").touch()
    place = tmp_path if flag == "--checkpoint" else tmp_path / "x.ibp"
    with pytest.raises(SettingsError, match=f"{flag} .* lies in the folder of a data set"):
        config_from_args([flag, str(place)]).check_outputs()


def test_weights_and_report_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    args = ["--save", str(tmp_path / "out"), "--report", str(tmp_path / "folder" / ".." / "out")]
    with pytest.raises(SettingsError, match=r"--save and --report both name .*out: name two files"):
        config_from_args(args).check_outputs()
