# argument NAME prints the text that the call has for NAME; $args is the call's JSON.
argument() {
	printf %s "$args" | sed -n 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p'
}
