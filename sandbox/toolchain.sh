# Prints the toolchain of the program $0, whose cache is below $1: the folders of its programs (path),
# what else it reads (read), what it writes (write), and its variables (env).
set -e
mkdir -p -m 700 "$1/$0"
cache=$(readlink -f "$1/$0")
echo "write $cache"
cd / # the files of a workspace choose no version, and no modules

# show prints the paths of a kind that exist. Every program can read /usr.
show() {
	kind=$1
	while read -r p; do
		p=$(readlink -e "$p") || continue
		case "$kind $p" in
		"read /usr/"*) ;;
		*) echo "$kind $p" ;;
		esac
	done
}

case "$0" in
go)
	root=$(go env GOROOT) mods=$(go env GOMODCACHE)
	echo "$root/bin" | show path
	printf '%s\n' "$root" "$mods" | show read
	printf 'env %s\n' "GOCACHE=$cache" "GOMODCACHE=$mods" GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local \
		GOENV=off GOTELEMETRY=off GOFLAGS=-buildvcs=false
	;;
node)
	exe=$(node -p process.execPath)
	bin=$(dirname "$exe")
	echo "$bin" | show path
	printf '%s\n' "$bin" "$bin/../lib/node_modules" | show read
	printf 'env %s\n' "npm_config_cache=$cache" npm_config_offline=true \
		npm_config_update_notifier=false COREPACK_ENABLE_NETWORK=0
	;;
python3)
	exe=$(python3 -I -c 'import os, sys; print(os.path.realpath(sys.executable))')
	bin=$(dirname "$exe")
	echo "$bin" | show path
	python3 -I -c 'import os, sys, sysconfig as c
for p in {sys.argv[1]} | {c.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib")}:
    print(p)
print(os.path.join(c.get_config_var("LIBDIR") or "", c.get_config_var("INSTSONAME") or "none"))' "$bin" | show read
	printf 'env %s\n' "PIP_CACHE_DIR=$cache" PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_OFFLINE=1
	;;
esac
