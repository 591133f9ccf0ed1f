"""Makes an environment's verifiers ready: references resolved and pinned, plugins found."""

from collections import Counter

from starforge_rewards.errors import InputError
from starforge_rewards.registry.folder import RowRubrics
from starforge_rewards.registry.protocol import Resolver
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.training.endpoint import ByEndpoint
from starforge_rewards.training.environment import (
    AnyVerifier,
    EndpointVerifier,
    Environment,
    Loaded,
    PluginVerifier,
    RubricVerifier,
)
from starforge_rewards.training.verify import ByPlugin, ByRubric, Verifier


def verifiers_of(loaded: Loaded, resolver: Resolver) -> list[Verifier]:
    """The verifiers, each under a name of its own.

    Raises:
        InputError: a rubric is refused, or a plugin or an endpoint cannot be used.
        NotFound: a reference names nothing that the asker may read.
    """
    environment = loaded.environment
    alone = environment.verifier is not None
    names = Counter[str]()
    ready: list[Verifier] = []
    for at, config in enumerate(environment.all_verifiers):
        named = _named(config)
        names[named] += 1
        name = named if names[named] == 1 else f"{named}#{names[named]}"
        where = "verifier" if alone else f"verifiers[{at}]"
        try:
            ready.append(_ready(config, name, environment, resolver))
        except InputError as error:
            if error.file is not None:
                raise
            field = f"{where}.{error.field}" if error.field else where
            raise InputError(error.problem, file=loaded.file, field=field) from error
    return ready


def _ready(
    config: AnyVerifier,
    name: str,
    environment: Environment,
    resolver: Resolver,
) -> Verifier:
    match config:
        case PluginVerifier():
            return ByPlugin(config, name)
        case EndpointVerifier():
            return ByEndpoint(config, name)
        case RubricVerifier():
            alone = environment.verifier is not None
            value = config.value or (environment.value if alone else "normalized")
            return ByRubric(config, name, _rubric(config, resolver), value)


def _rubric(config: RubricVerifier, resolver: Resolver) -> ResolvedRubric | RowRubrics:
    if config.ref is not None:
        return resolver.resolve(config.ref)
    if config.rubric is not None:
        return ResolvedRubric.pin(config.rubric)
    return RowRubrics(resolver)


def _named(config: AnyVerifier) -> str:
    match config:
        case RubricVerifier():
            return config.ref or "rubric"
        case PluginVerifier():
            return config.plugin
        case EndpointVerifier():
            return config.url
