// What LangChain and OpenAI's agents SDK, at their default settings, make of pawl serve, whose models are agents. argv[4] is
// the framework. cmd/pawl's test reads it.
import { z } from 'zod';

const [, , root, token, framework] = process.argv;
const baseURL = root + '/v1';
const City = z.object({ city: z.string() });
let ran = 0;
const locate = () => (ran++, 'Rome');

// A client has ask(text, {stream, tools, schema}), which returns what a program that uses it gets.
const clients = {
	async langchain(api) {
		const { ChatOpenAI } = await import('@langchain/openai');
		const { HumanMessage, ToolMessage } = await import('@langchain/core/messages');
		const { tool } = await import('@langchain/core/tools');
		const model = new ChatOpenAI({ model: 'clerk', apiKey: token, configuration: { baseURL }, useResponsesApi: api === 'responses' });
		const tools = [tool(locate, { name: 'locate', description: 'Where the user is.', schema: z.object({}) })];
		return async (text, { stream, client, schema }) => {
			if (schema) return JSON.stringify(await model.withStructuredOutput(schema).invoke(text));
			const using = client ? model.bindTools(tools) : model;
			const messages = [new HumanMessage(text)];
			for (;;) {
				let reply;
				if (!stream) reply = await using.invoke(messages);
				else for await (const chunk of await using.stream(messages)) reply = reply ? reply.concat(chunk) : chunk;
				if (!reply.tool_calls?.length) return reply.text;
				messages.push(reply);
				for (const call of reply.tool_calls) messages.push(await tools[0].invoke(call));
			}
		};
	},
	async agents(api) {
		const { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } = await import('@openai/agents');
		setTracingDisabled(true); // the trace goes to OpenAI
		const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: token, baseURL, useResponses: api === 'responses' }) });
		const tools = [tool({ name: 'locate', description: 'Where the user is.', parameters: z.object({}), execute: locate })];
		return async (text, { stream, client, schema }) => {
			const agent = new Agent({ name: 'page', model: 'clerk', tools: client ? tools : [], ...(schema && { outputType: schema }) });
			const result = await runner.run(agent, text, { stream });
			if (stream) {
				for await (const _ of result);
				if (result.error) throw result.error;
			}
			return schema ? JSON.stringify(result.finalOutput) : result.finalOutput;
		};
	},
};

const said = (e) => ({ status: e.status ?? null, code: e.code ?? /needs_decision|model_failed/.exec(e.message)?.[0] ?? null, message: /waits for a decision|made to fail/.exec(e.message)?.[0] ?? e.message });
const thrown = (p) => p.then((answer) => ({ answer }), said);
const all = {};
let invoice = 0;
for (const api of ['chat', 'responses']) {
	const ask = await clients[framework](api);
	for (const stream of [false, true]) {
		const mode = (stream ? 'streamed ' : 'whole ') + api + ' ';
		all[mode + 'text'] = await ask('hello there', { stream });
		all[mode + 'own tool'] = await ask('look Oslo', { stream });
		all[mode + 'parallel tools'] = await ask('both Oslo', { stream });
		ran = 0;
		all[mode + 'client tool'] = { text: await ask('locate me', { stream, client: true }), ran };
		all[mode + 'prose'] = await ask('prose', { stream, schema: City });
		const n = ++invoice;
		all[mode + 'needs a yes'] = await thrown(ask('pay ' + n, { stream }));
		all[mode + 'fails'] = await thrown(ask('fail ' + n, { stream }));
		all[mode + 'fails after a write'] = await thrown(ask('refund ' + n, { stream }));
	}
}
console.log(JSON.stringify(all));
