# Completion of pawl for bash, printed by: pawl completion bash
_pawl() {
	local line kind=
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:*) kind=$line ;;
		*) COMPREPLY+=("$line") ;;
		esac
	done < <(command pawl __complete bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
	case $kind in
	:files) compopt -o default ;;
	:dirs) compopt -o dirnames -o nospace ;;
	:open) compopt -o nospace ;;
	esac 2>/dev/null # bash 3 has no compopt
}
complete -o nosort -F _pawl pawl 2>/dev/null || complete -o default -F _pawl pawl
