import pytest
from playwright.sync_api import expect

from starforge_rewards.errors import NotFound
from tests.server.console.people import CRITERIA, Person

pytestmark = pytest.mark.browser


def fill_new(alice: Person, name: str = "answer-quality") -> None:
    alice.go("/rubrics/new")
    alice.field(f"Name, under {alice.owner}/").fill(name)
    alice.field("Description").fill("Scoring customer-support answers.")
    alice.field("To").fill("5")
    alice.field("Name").fill("Factually correct")
    alice.field("Weight").fill("3")
    alice.field("Instruction to a careful reader").fill("Every claim is true; a false one fails.")


def test_the_form_writes_what_rest_shows_and_an_equal_save_is_no_version(alice: Person) -> None:
    fill_new(alice)
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 1.")
    expect(alice.page).to_have_url(f"{alice.console.url}{alice.path()}/edit")
    shown = alice.rest("answer-quality")
    criterion = {
        "name": "Factually correct",
        "weight": 3.0,
        "description": "Every claim is true; a false one fails.",
    }
    assert shown["version"] == 1
    assert shown["rubric"] == {
        "description": "Scoring customer-support answers.",
        "visibility": "private",
        "scale_min": 0.0,
        "scale_max": 5.0,
        "criteria": [criterion],
    }
    alice.field("Weight").fill("2.5")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 2.")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Nothing changed: still version 2.")
    current = alice.rest("answer-quality")
    assert current["version"] == 2
    assert current["rubric"] == {**shown["rubric"], "criteria": [criterion | {"weight": 2.5}]}


def test_a_rubric_of_rest_goes_through_the_form_unchanged(alice: Person) -> None:
    anchored = {"name": "Polite", "weight": -0.5, "description": "", "anchors": {"0": "never"}}
    alice.write(levels=6, criteria=[*CRITERIA, anchored])
    alice.go(f"{alice.path()}/edit")
    expect(alice.field("Level 0").last).to_have_value("never")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Nothing changed: still version 1.")


def test_an_invalid_weight_is_said_beside_its_field_and_is_not_saved(alice: Person) -> None:
    alice.write()
    alice.go(f"{alice.path()}/edit")
    weight = alice.field("Weight").nth(1)
    weight.fill("heavy")
    criterion = alice.page.get_by_role("group", name="Criterion 2")
    beside = criterion.get_by_role("alert")
    expect(beside).to_have_text("Input should be a valid number")
    expect(weight).to_have_attribute("aria-invalid", "true")
    alice.button("Save").click()
    expect(alice.alert()).to_have_text("Not saved: 1 field cannot be used.")
    expect(weight).to_be_focused()
    assert alice.current().version == 1
    weight.fill("2")
    expect(beside).to_have_count(0)
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Nothing changed: still version 1.")


def test_a_new_form_faults_nothing_until_it_is_saved_and_then_everything(alice: Person) -> None:
    alice.go("/rubrics/new")
    expect(alice.page.get_by_role("alert")).to_have_count(0)
    alice.field(f"Name, under {alice.owner}/").fill("x")
    alice.field("Weight").fill("-1")
    alice.button("Save").click()
    expect(alice.page.get_by_text("must not be blank")).to_be_visible()
    alice.field("Name").fill("Right")
    expect(
        alice.page.get_by_text("criteria: at least one weight must be above zero")
    ).to_be_visible()
    with pytest.raises(NotFound):
        alice.current("x")


def test_a_name_that_cannot_be_is_refused(alice: Person) -> None:
    fill_new(alice, "../x")
    expect(alice.page.get_by_text("the name must match")).to_be_visible()
    alice.button("Save").click()
    expect(alice.alert()).to_have_text("Not saved: the name cannot be used.")


def test_an_edit_that_came_first_is_said_and_what_was_typed_stays(alice: Person) -> None:
    alice.write()
    alice.go(f"{alice.path()}/edit")
    alice.field("Description").fill("Mine.")
    alice.write(description="Of somebody else.")
    alice.button("Save").click()
    expect(alice.alert()).to_contain_text("Not saved: version 2 came first.")
    expect(alice.field("Description")).to_have_value("Mine.")
    see = alice.page.get_by_role("link", name="See what changed")
    expect(see).to_have_attribute("href", f"/console{alice.path()}/revisions?before=1&after=2")
    assert alice.current().version == 2
    alice.button("Save mine as version 3").click()
    expect(alice.said()).to_have_text("Saved as version 3.")
    assert alice.current().rubric["description"] == "Mine."


def test_what_is_saved_onto_another_edit_is_made_public_only_when_confirmed(alice: Person) -> None:
    alice.write()
    alice.go(f"{alice.path()}/edit")
    alice.page.get_by_role("radio", name="Public: all with a token").click()
    alice.button("Save").click()
    alice.write(description="Of somebody else.")
    alice.button("Publish").click()
    alice.button("Save mine as version 3").click()
    expect(alice.page.get_by_role("dialog")).to_contain_text("versions 1 to 2")
    alice.button("Publish").click()
    expect(alice.said()).to_have_text("Saved as version 3.")
    assert alice.current().rubric["visibility"] == "public"


def test_a_name_that_is_taken_meanwhile_loses_nothing(alice: Person) -> None:
    fill_new(alice)
    alice.write()
    alice.button("Save").click()
    expect(alice.alert()).to_contain_text("is there already. Choose another name.")
    alice.field(f"Name, under {alice.owner}/").fill("another")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 1.")
    assert alice.criteria() == CRITERIA


def test_nothing_becomes_public_before_the_writer_confirms_it(alice: Person) -> None:
    alice.write()
    alice.write(description="Second.")
    alice.go(f"{alice.path()}/edit")
    expect(alice.page.get_by_text("The present visibility governs all versions.")).to_be_visible()
    public = alice.page.get_by_role("radio", name="Public: all with a token")
    public.click()
    alice.button("Save").click()
    dialog = alice.page.get_by_role("dialog")
    expect(dialog).to_contain_text("versions 1 to 2, and every later one.")
    alice.button("Keep it private").click()
    expect(dialog).to_have_count(0)
    assert (alice.current().version, alice.current().rubric["visibility"]) == (2, "private")
    alice.button("Save").click()
    alice.button("Publish").click()
    expect(alice.said()).to_have_text("Saved as version 3.")
    assert alice.current().rubric["visibility"] == "public"


def test_criteria_are_added_moved_and_removed_with_what_was_typed(alice: Person) -> None:
    alice.write()
    alice.go(f"{alice.path()}/edit")
    alice.button("Add criterion").click()
    expect(alice.field("Name").nth(3)).to_be_focused()
    alice.page.keyboard.type("Brief")
    alice.button("Move up criterion 4").click()
    expect(alice.field("Name").nth(2)).to_have_value("Brief")
    expect(alice.button("Move up criterion 3")).to_be_focused()
    alice.button("Remove criterion 1").click()
    expect(alice.field("Name")).to_have_count(3)
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 2.")
    assert [one["name"] for one in alice.criteria()] == [
        "Answers the question asked",
        "Brief",
        "Cites the handbook",
    ]


def test_an_anchor_whose_level_goes_is_kept_to_be_cleared(alice: Person) -> None:
    alice.write(criteria=[{"name": "Right", "weight": 1, "anchors": {"5": "all of it"}}])
    alice.go(f"{alice.path()}/edit")
    alice.field("To").fill("4")
    last = alice.field("Level 5")
    expect(last).to_have_value("all of it")
    alice.button("Save").click()
    expect(alice.page.get_by_text("'5' is no level: the levels are 0, 1, 2, 3, 4")).to_be_visible()
    last.fill("")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 2.")
    assert alice.criteria() == [{"name": "Right", "weight": 1.0, "description": ""}]


def test_advice_comes_while_one_types_and_refuses_nothing(alice: Person) -> None:
    fill_new(alice)
    advice = alice.page.get_by_role("region", name="Advice")
    expect(advice).to_contain_text("Nothing to advise.")
    alice.field("Instruction to a careful reader").fill("Accuracy")
    expect(advice).to_contain_text("Criterion 1, description")
    expect(advice).to_contain_text("is a label, not an instruction")
    alice.button("Save").click()
    expect(alice.said()).to_have_text("Saved as version 1.")


def test_a_rubric_is_made_with_the_keyboard_alone(alice: Person) -> None:
    alice.go("/rubrics")
    keyboard = alice.page.keyboard
    keyboard.press("Tab")
    expect(alice.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    keyboard.press("Enter")
    keyboard.press("Tab")
    expect(alice.page.get_by_role("link", name="New rubric")).to_be_focused()
    keyboard.press("Enter")
    alice.page.wait_for_url("**/rubrics/new")
    alice.page.wait_for_function("window.did_handshake === true")
    for label, text in (
        (f"Name, under {alice.owner}/", "by-keyboard"),
        ("Description", "Typed."),
        ("Name", "Right"),
        ("Weight", "2"),
        ("Instruction to a careful reader", "True, and never false."),
    ):
        step_to(alice, label)
        keyboard.press("Control+A")
        keyboard.type(text)
    step_to(alice, "Save")
    keyboard.press("Enter")
    expect(alice.said()).to_have_text("Saved as version 1.")
    assert alice.criteria("by-keyboard") == [
        {"name": "Right", "weight": 2.0, "description": "True, and never false."}
    ]


def step_to(person: Person, name: str) -> None:
    """Presses Tab until what has the focus, and shows it, has this name."""
    for _ in range(40):
        person.page.keyboard.press("Tab")
        focused = person.page.locator(":focus")
        named = focused.evaluate(
            "e => e.ariaLabel || e.labels?.[0]?.querySelector('.q-field__label')?.textContent"
            " || e.innerText.replace(/^\\w+\\n/, '')"
        )
        if named == name:
            return
    raise AssertionError(f"{name!r} is not reached")


def test_only_its_owner_edits_a_rubric(alice: Person, bob: Person) -> None:
    alice.write(visibility="public")
    assert bob.go(f"{alice.path()}/edit") == 403
    expect(bob.alert()).to_contain_text("is not yours: only its owner writes it")
    bob.go(alice.path())
    expect(bob.page.get_by_role("link", name="Edit")).to_have_count(0)
