"""The documentation: its site, which `make docs` builds, and README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import a_browser, open_file
from firstlight.lab.explore.catalog import drawings
from tests_support import ROOT

PACKAGES = ("data", "lit", "callbacks", "networks", "text", "figures")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LOADED = re.compile(r"""<(?:link|script|img|iframe|source)\b[^>]*\s(?:href|src)=["']?([^"'\s>]+)""")  # by a browser
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
MISTAKE = re.compile(r"^\$ .*\nerror: .*$", re.MULTILINE)  # a command and its answer
PYTHON = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)  # arguments of functions are not choices
CHOICE = re.compile(r"(?<![\w-])(task|model|optimizer|schedule|logger|trainer|experiment|debug)=([\w/]+)(?![\w/(])")


of_the_site = pytest.mark.slow  # minutes to build the site with its lessons; `make docs` also ends at a broken link
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it. A warning, such as one of a link that leads nowhere, ends the build."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


@of_the_site
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        found = LOADED.findall(page.read_text(encoding="utf-8"))
        addresses = [address for address in found if not address.startswith("data:")]
        is_exported = (page.parent / f"inside-{page.name}").exists()  # a playground with all parts inside
        assert addresses == [] if is_exported else any(address.endswith(".css") for address in addresses), page
        assert not [address for address in addresses if re.match(r"([a-z]+:)?//", address)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?([a-z]+:)?//""", style.read_text(encoding="utf-8")), style


@of_the_site
@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(package: str, site: Path) -> None:
    page = (site / "api" / f"{package}.html").read_text(encoding="utf-8")
    names = __import__(f"firstlight.{package}", fromlist=["__all__"]).__all__
    assert [name for name in names if f'id="firstlight.{package}.{name}"' not in page] == []


@of_the_site
def test_the_site_works_from_the_disk_with_its_search(site: Path) -> None:
    with a_browser() as browser:
        opened = open_file(browser, site / "index.html")
        opened.page.locator("[data-md-component=search-query]").click()
        opened.page.keyboard.type("resuming exact")
        found = opened.page.locator(".md-search-result__link", has_text="Why resuming is exact").first
        found.wait_for()
        found.click()
        opened.page.wait_for_url("**/architecture.html*")
        assert opened.foreign == []
        assert opened.errors == []


@of_the_site
def test_the_start_page_fits_a_phone_and_its_session_is_copied_without_output(site: Path) -> None:
    with a_browser() as browser:
        page = open_file(browser, site / "index.html", 400, color_scheme="dark").page
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
        copy = "code => { code.dataset.mdCopying = ''; return code.innerText; }"
        lines = page.locator(".boxed code").first.evaluate(copy).splitlines()
        assert len(lines) == 4
        assert [line for line in lines if not line.startswith("python src/")] == []


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 130] == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_installation_begins_with_make_setup(page: str) -> None:
    commands = re.findall(
        r"^(?:PIP_\S+ )?(make \w+|source \S+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert commands[0] == "make setup"
    assert {"make train", "make test"} < set(commands)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "coming-from"], ids=lambda path: path.stem)
def test_every_choice_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    created = re.findall(r"\bfirstlight new (\w+)", text)  # a project, whose choices are those of the template
    for group, choice in CHOICE.findall(PYTHON.sub("", MISTAKE.sub("", text))):
        path = ROOT / "conf" / group / f"{choice}.yaml"
        if choice in created:
            path = ROOT / "src/firstlight/project_template/conf" / group / "PROJECT_NAME.yaml.template"
        assert path.is_file() or f"conf/{group}/{choice}.yaml\n" in text, f"{group}={choice}"


def test_the_cells_of_the_page_on_interventions_run() -> None:
    cells = PYTHON.findall((ROOT / "docs/interventions.md").read_text(encoding="utf-8"))
    assert cells
    code = "\n".join(cell.removeprefix("```python\n").removesuffix("```") for cell in cells)
    known: dict[str, object] = {}
    exec(compile(code, "docs/interventions.md", "exec"), known)  # noqa: S102 (our own page)
    assert known["cache"]


def test_the_number_of_figures_in_readme_is_that_of_the_catalog() -> None:
    found = re.search(r"\| looking inside \| (\d+) figures", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    assert int(found[1]) == len(drawings())
