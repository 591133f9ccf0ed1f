from tests.training import venvs


def test_skyrls_own_registry_and_metrics_take_it_from_many_threads() -> None:
    venvs.run("skyrl", "tests.training.real.skyrl")


def test_it_conforms_where_skyrl_is_installed() -> None:
    venvs.conforms("skyrl", "skyrl")
