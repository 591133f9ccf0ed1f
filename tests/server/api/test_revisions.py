from tests.server.asking import BODY, RUBRIC, Server, codes, fields


def test_revisions_have_the_full_text_of_every_version_newest_first(server: Server) -> None:
    server.write()
    server.write(description="Second.")
    revisions = server.ask("alice", "GET", f"{RUBRIC}/revisions").json()["revisions"]
    assert [(one["version"], one["rubric"]) for one in revisions] == [
        (2, BODY | {"description": "Second."}),
        (1, BODY),
    ]
    assert {one["author"] for one in revisions} == {"alice"}
    one = server.ask("alice", "GET", f"{RUBRIC}/revisions/1").json()
    assert one == revisions[1]
    shown = server.ask("alice", "GET", f"{RUBRIC}?version=1").json()
    assert shown == one | {"archived": False}


def test_a_version_that_is_not_there_is_not_found(server: Server) -> None:
    server.write()
    assert codes(server.ask("alice", "GET", f"{RUBRIC}/revisions/2")) == (404, "not_found")
    assert codes(server.ask("alice", "GET", f"{RUBRIC}?version=2")) == (404, "not_found")
    missing = server.ask("alice", "GET", f"{RUBRIC}/diff?before=1&after=2")
    assert codes(missing) == (404, "not_found")


def test_a_diff_says_what_changed_between_two_versions(server: Server) -> None:
    server.write()
    server.write(scale_max=4)
    said = server.ask("alice", "GET", f"{RUBRIC}/diff?before=1&after=2").json()
    assert said["changes"] == [{"field": "scale_max", "before": 5.0, "after": 4.0}]
    same = server.ask("alice", "GET", f"{RUBRIC}/diff?before=2&after=2").json()
    assert same == {"changes": [], "asked_again": []}
    assert fields(server.ask("alice", "GET", f"{RUBRIC}/diff?before=1")) == [["query", "after"]]
