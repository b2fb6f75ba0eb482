# Sourced by the scripts that install parts: programs and npm packages that only tests need. A part
# is stored in the user's cache directory (XDG_CACHE_HOME, or ~/.cache) under a name that has the
# checksum of all that decides its content, so that another checkout finds it there; a checkout has
# links to its parts. A part that nothing links to may be deleted at any time.

parts=${XDG_CACHE_HOME:-$HOME/.cache}/pawl/parts

# part NAME KEY COMMAND…: sets $part to the directory of the part NAME with that KEY. Where it is
# absent, COMMAND builds it in the empty directory "$part", and the part appears only when COMMAND
# has succeeded.
part() {
	local part_name=$1 part_dir # a command sees these, so their names are out of its way
	part_dir=$parts/$part_name-$(printf '%s' "$2" | cksum | tr ' ' '-')
	shift 2
	if [ ! -d "$part_dir" ]; then
		part=$part_dir.$$
		mkdir -p "$part" || return 1
		echo "building $part_name into $part_dir"
		if ! "$@"; then
			rm -rf "$part"
			return 1
		fi
		# Another checkout may have built the same part in the meantime.
		if [ -d "$part_dir" ]; then rm -rf "$part"; else mv "$part" "$part_dir"; fi || return 1
	fi
	part=$part_dir
}

# link TARGET NAME: makes NAME a link to TARGET, and replaces what an older version of these scripts
# installed there.
link() {
	[ "$(readlink "$2" 2>/dev/null)" != "$1" ] || return 0
	mkdir -p "$(dirname "$2")" && rm -rf "$2" && ln -s "$1" "$2"
}

# go_part NAME PACKAGE@VERSION: the program of a Go package, linked into .bin.
go_part() {
	part "$1" "$2 $(go env GOVERSION GOOS GOARCH)" go_install "$2" && link "$part/$1" ".bin/$1"
}
go_install() { GOBIN=$part GOFLAGS= GOWORK=off go install -trimpath -ldflags='-s -w' "$1"; }

# npm_part DIRECTORY: the npm packages that the lock file in DIRECTORY names, linked to
# DIRECTORY/node_modules.
npm_part() {
	local name
	name=npm-$(basename "$1")
	part "$name" "$(cat "$1/package.json" "$1/package-lock.json" "$1/.npmrc") $(node --version)" npm_install "$1" &&
		link "$part/node_modules" "$1/node_modules"
}
npm_install() { cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" "$part" && (cd "$part" && npm ci --silent); }
