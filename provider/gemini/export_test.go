package gemini

// FinishReasons is the table of finish reasons, which a test compares with the official SDK.
var FinishReasons = finishReasons
