// Reads streams from the file at argv[2], a list of {protocol, frames}, and passes each to the client
// of its protocol: @ag-ui/client's boundary and verifier, the chunk schema and the reader of ai.
// Prints for each stream what the client says about it: "" means nothing.
import fs from 'node:fs';
const { from, lastValueFrom } = await import('rxjs');
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = '';
let dropped = '';
console.warn = (...all) => (dropped ||= all.join(' '));
console.error = () => {};
const agui = { 'ag-ui-1': await import('@ag-ui/client'), 'ag-ui-0': await import('ag-ui-old') };
const ai = { 'ai-6': await import('ai'), 'ai-7': await import('ai7') };

const walks = {
	async agui(client, frames) {
		const { verifyEvents, enforceEvents, EventSchemas } = client;
		let events = from(frames);
		if (enforceEvents) events = events.pipe(enforceEvents());
		await lastValueFrom(events.pipe(verifyEvents(false)), { defaultValue: null });
		const last = frames.at(-1).type;
		if (last !== 'RUN_FINISHED' && last !== 'RUN_ERROR') throw new Error('it ends with ' + last);
	},
	async ai(client, frames) {
		const schema = client.uiMessageChunkSchema();
		for (const f of frames) {
			const { success, error } = await schema.validate(f);
			if (!success) throw error;
		}
		const stream = new ReadableStream({ start(c) { for (const f of frames) c.enqueue(f); c.close(); } });
		let failed;
		for await (const _ of client.readUIMessageStream({ stream, onError: (e) => (failed ??= e) }));
		if (failed && !frames.some((f) => f.type === 'error' && failed.message.includes(f.errorText))) throw failed;
	},
};
const said = [];
for (const { protocol, frames } of JSON.parse(fs.readFileSync(process.argv[2]))) {
	dropped = '';
	const walk = agui[protocol] ? walks.agui(agui[protocol], frames) : walks.ai(ai[protocol], frames);
	said.push(await walk.then(() => dropped, (e) => e.message));
}
console.log(JSON.stringify({ said }));
