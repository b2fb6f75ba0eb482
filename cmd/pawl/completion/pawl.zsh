#compdef pawl
# Completion of pawl for zsh, printed by: pawl completion zsh
_pawl() {
	local line kind= tab=$'\t'
	local -a values shown
	while IFS= read -r line; do
		case $line in
		:*) kind=$line ;;
		*)
			values+=("${line%%$tab*}")
			shown+=("${line/$tab/  -- }")
			;;
		esac
	done < <(command pawl __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
	case $kind in
	:files) compset -P '--*='; _files ;;
	:dirs) compset -P '--*='; _files -/ ;;
	:open) compadd -V pawl -S '' -l -d shown -a values ;;
	*) compadd -V pawl -l -d shown -a values ;;
	esac
}
if [ "$funcstack[1]" = _pawl ]; then
	_pawl "$@"
else
	compdef _pawl pawl
fi
