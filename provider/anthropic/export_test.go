package anthropic

// StopReasons is the table of stop reasons, which a test compares with the official SDK.
var StopReasons = stopReasons
