# Everything the project can do to itself. `make help` lists it.
.DEFAULT_GOAL := help
.PHONY: help demo check test race soak lint docs site man install fuzz bench bench-check bench-update

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)$$/  make \1\t\2/' | expand -t 24

demo: ## an agent at work, without a key and without a network
	go run ./cmd/pawl/demo

check: ## before a patch: gofmt, vet, staticcheck, and the tests that need Go alone
	@scripts/lint
	@scripts/test check

test: ## set up what takes seconds, then every test once, at small sizes
	@scripts/test test

race: ## every test under the race detector, at small sizes; CI runs it
	@scripts/test race

soak: ## every test at full size, with Temporal's server and the collector, built from source; CI runs it
	@scripts/test soak

lint: ## only gofmt, vet and staticcheck
	@scripts/lint

docs: ## write the generated parts of README.md and docs/ again, from the code
	go test ./internal/test/docgen -run Test -update
	go test ./provider/openai ./provider/anthropic ./provider/gemini -run 'TestWire|TestQuirks|TestStreamsInPieces' -update
	go test ./provider -run 'TestServersPage|TestExampleModels' -update
	go test ./react -run TestPage -update
	go test ./pawltest -run 'TestParity|TestToolChoices' -update
	go test ./cmd/pawl -run 'TestCLI|TestMistakesPage|TestDemoRecording' -update
	go test ./internal/agentfile -run 'TestPage|TestFrameworkRows' -update
	go test ./mcp -run 'TestConformance|TestInspector|TestPoisoned|TestCorpus|TestRequestBytes' -update
	go test ./pawltest/hostile ./pawltest/hostilemcp -run TestPage -update
	go test ./server -run TestHTTPPage -update

site: ## make the web site of the documents, with its search, in the folder site
	go run ./internal/test/site/make

man: ## write the man pages into man/man1, made from the help
	go run ./cmd/pawl man --dir man/man1

PREFIX ?= /usr/local
DATA = $(DESTDIR)$(PREFIX)/share

install: ## the program, its man pages and the completion of bash, zsh and fish; PREFIX=/usr/local
	go build -o $(DESTDIR)$(PREFIX)/bin/pawl ./cmd/pawl
	$(DESTDIR)$(PREFIX)/bin/pawl man --dir $(DATA)/man/man1
	install -D -m 644 cmd/pawl/completion/pawl.bash $(DATA)/bash-completion/completions/pawl
	install -D -m 644 cmd/pawl/completion/pawl.zsh $(DATA)/zsh/site-functions/_pawl
	install -D -m 644 cmd/pawl/completion/pawl.fish $(DATA)/fish/vendor_completions.d/pawl.fish

.PHONY: tidy
tidy: ## go mod tidy for each of the three modules
	@scripts/tidy

fuzz: ## every fuzz target for a short time; FUZZTIME=10s
	@scripts/fuzz

.PHONY: portable
portable: ## build and vet everything for macOS and Windows, from any machine; CI runs it
	@scripts/portable

BENCH = $(if $(ROWS),-rows '$(value ROWS)') $(if $(QUICK),-quick)

bench: ## speed beside loops written by hand; QUICK=1 or ROWS=regexp picks rows
	@scripts/bench $(BENCH)

bench-check: ## fail when a ratio fell by more than 15 % against bench/ratios.json
	@scripts/bench -check $(BENCH)

bench-update: ## measure, and write bench/ratios.json and docs/performance.md
	@scripts/bench -update $(BENCH)
