package runs

// BatchBytes is the approximate number of bytes sent at once.
const BatchBytes = 64 << 10
