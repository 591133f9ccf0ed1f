from pathlib import Path

from starforge_rewards.registry import shipped
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.rubrics.ref import Ref

REF = Ref(owner="starforge", name="support-answer")
TEXT = "criteria:\n  - name: Correct\n    weight: 1\n"


def test_shipped_rubrics_are_public_and_published_once(database: Database) -> None:
    first = shipped.publish(database)
    assert REF.model_copy(update={"version": 1}) in first
    assert shipped.publish(database) == []
    anyone = registry_of(database, User(owner="alice"))
    held = anyone.rubrics.resolve(str(REF))
    assert held.digest == FolderRegistry().resolve(str(REF)).digest
    assert str(held) == f"{REF}@1"


def test_a_new_text_is_a_new_version_unless_the_owner_has_taken_it_over(
    database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "team" / "answer.yaml"
    file.parent.mkdir()
    file.write_text(TEXT)
    assert [str(ref) for ref in shipped.publish(database, tmp_path)] == ["team/answer@1"]
    file.write_text(TEXT.replace("1", "2"))
    assert [str(ref) for ref in shipped.publish(database, tmp_path)] == ["team/answer@2"]
    owner = registry_of(database, User(owner="team")).rubrics
    ref = Ref(owner="team", name="answer")
    edited = owner.show(ref).resolved().rubric.model_copy(update={"description": "Ours."})
    assert owner.put(ref, edited).version == 3
    file.write_text(TEXT.replace("1", "4"))
    assert shipped.publish(database, tmp_path) == []
    assert owner.show(ref).version == 3
