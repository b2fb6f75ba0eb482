# Count, sum and mean of the numbers in the data.
. ./argument.sh
args=$(cat)
argument data | tr -c '0-9.\n' '\n' | awk '
	/[0-9]/ { n++; sum += $1 }
	END { printf "{\"count\":%d,\"sum\":%d,\"mean\":%.1f}\n", n, sum, n ? sum / n : 0 }'
