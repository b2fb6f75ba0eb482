package agentfile

// Meaning is meaning, for the generated page.
var Meaning = meaning
