# The records whose status is one of the words of the query, at most limit of them.
. ./argument.sh
args=$(cat)
awk -F, -v query="$(argument query)" -v limit="$(argument limit)" '
	BEGIN { n = split(tolower(query), words, " "); if (limit + 0 == 0) limit = 10; printf "[" }
	NR > 1 && found < limit { for (i = 1; i <= n; i++) if (words[i] == $3) {
		printf "%s{\"id\":\"%s\",\"name\":\"%s\"}", found++ ? "," : "", $1, $2; break } }
	END { print "]" }' users.csv
