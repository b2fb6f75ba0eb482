// Walks the scenarios of AG-UI against the server at argv[2], with @ag-ui/client 1.0 or, if argv[3]
// is 0, with 0.0.59, and prints what the client has at the end of each.
const [root, version] = process.argv.slice(2);
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = ''; // what the client drops is a fault
const dropped = [];
console.warn = (...all) => dropped.push(all.join(' '));
console.error = () => {};
const { HttpAgent } = await import(version === '0' ? 'ag-ui-old' : '@ag-ui/client');

let posts = 0;
const web = globalThis.fetch;
globalThis.fetch = (url, init) => {
	if (init?.method === 'POST') posts++;
	return web(url, init);
};

const result = (agent, id) => {
	const m = agent.messages.find((m) => m.role === 'tool' && m.toolCallId === id);
	return m ? ` = ${m.content}` : '';
};
const seen = (agent) => agent.messages.flatMap((m) => {
	if (m.role === 'reasoning') return [`thinks:${m.content}`];
	if (m.role !== 'assistant') return [];
	const calls = (m.toolCalls ?? []).map((c) => `${c.function.name}(${c.function.arguments})${result(agent, c.id)}`);
	return [[...(m.content ? [m.content] : []), ...calls].join(' | ')];
});

function open(thread, more = {}) {
	const agent = new HttpAgent({ url: `${root}/v1/agui/clerk${more.query ?? ''}`, threadId: `${thread}-${version}`, headers: more.headers,
		initialMessages: more.messages });
	agent.ends = [];
	agent.failures = [];
	agent.events = [];
	agent.subscribe({
		onEvent: ({ event }) => void agent.events.push(event),
		onRunFinishedEvent: ({ event }) => void agent.ends.push(event.outcome?.type ?? 'none'),
		onRunErrorEvent: ({ event }) => void agent.ends.push(`error ${event.code}`),
	});
	return agent;
}
let ids = 0;
async function run(agent, parameters) {
	await agent.runAgent(parameters).catch((e) => agent.failures.push(e.message));
	return agent;
}
async function say(agent, text, parameters) {
	agent.addMessage({ id: `u${++ids}-${version}`, role: 'user', content: text });
	return run(agent, parameters);
}
const answer = (agent, ...answers) =>
	run(agent, { resume: agent.pendingInterrupts.map((q, i) => ({ interruptId: q.id, ...answers[i] })) });
const yes = { status: 'resolved', payload: { approved: true } };
const no = { status: 'resolved', payload: { approved: false, reason: 'too much' } };

const all = {};
async function scene(name, walk) {
	posts = 0;
	dropped.length = 0;
	const agent = await walk();
	all[name] = { posts, shows: seen(agent), ends: agent.ends, failures: agent.failures, dropped: [...dropped] };
}
const until = async (done) => {
	while (!(await done())) await new Promise((go) => setTimeout(go, 2));
};
const waits = async () => (await web(`${root}/test/waits`)).text();
const release = () => web(`${root}/test/release`, { method: 'POST' });
const locate = { name: 'locate', description: 'Finds the user.', parameters: { type: 'object' } };

await scene('text', () => say(open('text'), 'hello'));
await scene('reasoning', () => say(open('reasoning'), 'think'));
await scene('second message', async () => say(await say(open('second'), 'one'), 'two'));
await scene('two tools, one fails', () => say(open('tools'), 'call look Oslo, fail'));
await scene('question', () => say(open('question'), 'call pay 1'));
await scene('approve', async () => answer(await say(open('approve'), 'call pay 2'), yes));
await scene('deny', async () => answer(await say(open('deny'), 'call pay 3'), no));
await scene('cancelled interrupt', async () => answer(await say(open('cancelled'), 'call pay 3'), { status: 'cancelled' }));
await scene('one yes, one no', async () => answer(await say(open('mixed'), 'call pay 4, pay 5'), yes, no));
await scene('edited', async () =>
	answer(await say(open('edited'), 'call pay 6'), { status: 'resolved', payload: { approved: true, args: { invoice: 60 } } }));
await scene('asks twice', async () => answer(await answer(await say(open('twice'), 'call pay 7 then pay 8'), yes), yes));
await scene('call of an earlier id', async () => say(await say(open('ids'), 'call look a'), 'call look b'));
await scene('no decision', async () => answer(await say(open('none'), 'call pay 9'), { status: 'resolved', payload: { agreed: true } }));
await scene('late yes', async () => {
	const agent = await say(open('late'), 'call pay 10');
	const questions = agent.pendingInterrupts;
	await answer(agent, yes);
	return run(agent, { resume: questions.map((q) => ({ interruptId: q.id, ...yes })) });
});
await scene('unknown interrupt', async () => {
	const agent = await say(open('unknown'), 'call pay 11');
	return run(agent, { resume: [{ interruptId: 'agui_x/1/0.y', ...yes }, { interruptId: 'z', ...yes }, ...agent.pendingInterrupts.map((q) => ({ interruptId: q.id, ...yes }))] });
});
await scene('user writes instead', async () => {
	const agent = await say(open('instead'), 'call pay 12');
	return say(open('instead', { messages: agent.messages }), 'hello');
});
await scene('answer and message', async () => {
	const agent = await say(open('both'), 'call pay 13');
	agent.addMessage({ id: `u${++ids}-${version}`, role: 'user', content: 'thanks' });
	return answer(agent, yes);
});
await scene('tool of the agent for the page', async () => {
	const agent = await say(open('passive'), 'call ask');
	agent.addMessage({ id: 'r1', role: 'tool', toolCallId: agent.messages.at(-1).toolCalls[0].id, content: 'blue' });
	return run(agent);
});
await scene('tool of the page', async () => {
	const agent = await say(open('client'), 'call locate, look Oslo', { tools: [locate] });
	const call = agent.messages.find((m) => m.toolCalls)?.toolCalls[0];
	agent.addMessage({ id: 'r2', role: 'tool', toolCallId: call.id, content: '{"city":"Rome"}' });
	return run(agent, { tools: [locate] });
});
await scene('tool of the page and a question', async () =>
	answer(await say(open('beside'), 'call locate, pay 14', { tools: [locate] }), { status: 'resolved', payload: { city: 'Rome' } }, yes));
await scene('equal tool', () => say(open('clash'), 'hello', { tools: [{ ...locate, name: 'pay' }] }));
await scene('stop and attach', async () => {
	const first = open('attach');
	const began = await waits();
	const sent = say(first, 'call wait', { runId: `attach-${version}` });
	await until(async () => (await waits()) !== began && first.messages.some((m) => m.toolCalls));
	first.abortRun();
	await sent;
	const agent = open('attach', { messages: first.messages });
	const again = run(agent, { runId: `attach-${version}` });
	await until(() => agent.events.some((e) => e.type === 'TOOL_CALL_END'));
	await release();
	return again;
});
await scene('attach at the end', async () => {
	const first = await say(open('over'), 'think', { runId: `over-${version}` });
	return run(open('over', { messages: first.messages }), { runId: `over-${version}` });
});
await scene('attach behind an answer', async () => {
	const first = await say(open('behind'), 'call pay 15');
	const resume = first.pendingInterrupts.map((q) => ({ interruptId: q.id, ...yes }));
	await run(first, { runId: `behind-${version}`, resume });
	return run(open('behind', { messages: first.messages }), { runId: `behind-${version}`, resume });
});
await scene('another message', async () => {
	await say(open('other'), 'one', { runId: `other-${version}` });
	return say(open('other'), 'two', { runId: `other-${version}` });
});
await scene('cancel', async () => {
	const agent = open('cancel');
	const began = await waits();
	const sent = say(agent, 'call wait');
	await until(async () => (await waits()) !== began && agent.events.some((e) => e.type === 'TOOL_CALL_END'));
	await web(`${root}/v1/runs/${agent.events[0].metadata.pawl.run}/cancel`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
	return sent;
});
await scene('gone client', async () => {
	const agent = open('gone');
	const began = await waits();
	const sent = say(agent, 'call wait');
	await until(async () => (await waits()) !== began && agent.events.some((e) => e.type === 'TOOL_CALL_END'));
	agent.abortRun();
	await sent;
	const id = agent.events[0].metadata.pawl.run;
	await until(async () => (await (await web(`${root}/v1/runs/${id}`)).json()).stop === 'cancelled');
	return agent;
});
await scene('context', () => say(open('context'), 'instructions', { context: [{ description: 'page', value: 'the invoices' }] }));
await scene('agent as a tool', () => say(open('inner', { query: '?inner=1' }), 'call helper'));
await scene('question of an inner agent', async () => {
	const agent = await answer(await say(open('asks', { query: '?inner=1' }), 'call payer'), yes);
	agent.ends.push(...agent.events.filter((e) => e.type.startsWith('SUBAGENT')).map((e) => e.type.slice(9) + (e.outcome ? ` ${e.outcome.type}` : '')));
	return agent;
});
await scene('failing model', () => say(open('fails'), 'break'));
await scene('failing model behind a write', async () => answer(await say(open('breaks'), 'call pay 16 then break'), yes));
await scene('end behind a tool', () => say(open('end'), 'call end'));
await scene('progress', () => say(open('progress'), 'call report'));
await scene('control', async () => { // two runs are begun without the end of the first: the client must complain
	const agent = open('control');
	globalThis.fetch = async (url, init) => {
		const res = await web(url, init);
		return new Response((await res.text()).replace('"TEXT_MESSAGE_END"', '"CUSTOM","name":"x","value":1'), { headers: res.headers });
	};
	return say(agent, 'hello');
});
globalThis.fetch = web;
all.capabilities = await (await fetch(`${root}/v1/agui/clerk`)).json();
all.protobuf = (await fetch(`${root}/v1/agui/clerk`, { method: 'POST', headers: { accept: 'application/vnd.ag-ui.event+proto', 'content-type': 'application/json' }, body: '{}' })).status;
console.log(JSON.stringify(all));
