// The official client of A2A at its default settings against a server of pawl: prints what each
// scenario sees as one JSON object. Arguments: the address of the server, and a token.
import { randomUUID } from 'node:crypto'
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'

const [base, token, binding, kind] = process.argv.slice(2)
const send = (url, init = {}) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })
const factory = new ClientFactory({
  transports: [binding === 'rest' ? new RestTransportFactory({ fetchImpl: send }) : new JsonRpcTransportFactory({ fetchImpl: send })],
})
const client = await factory.createFromUrl(base, kind && '/a2a/clerk/.well-known/agent-card.json')
const out = {}
const states = ['unspecified', 'submitted', 'working', 'completed', 'failed', 'canceled', 'input']
const part = (content) => ({ content, metadata: undefined, filename: '', mediaType: '' })
const message = (text, more = {}) => ({
  tenant: '', metadata: undefined, configuration: undefined, ...more.request,
  message: {
    messageId: randomUUID(), contextId: '', taskId: '', role: 1, metadata: undefined, extensions: [], referenceTaskIds: [],
    parts: [typeof text === 'string' ? part({ $case: 'text', value: text }) : part({ $case: 'data', value: text })], ...more.message,
  },
})
const texts = (parts) => parts.map((p) => (p.content.$case === 'data' ? JSON.stringify(p.content.value) : p.content.value)).join('')
const shown = (task) => `${states[task.status.state]}: ${(task.artifacts ?? []).map((a) => texts(a.parts)).join('')}`
const asked = (task) => task.status.message.parts.find((p) => p.content.$case === 'data').content.value.pawl
const failure = async (f) => { try { await f(); return 'none' } catch (e) { return e.constructor.name.replace(/^_/, '') } }
const all = async (stream, begun = () => {}) => {
  let answer = '', seen = []
  for await (const e of stream) {
    const { $case, value } = e.payload
    if (seen.length === 0) await begun()
    if ($case === 'task') seen.push('task')
    if ($case === 'statusUpdate') seen.push(states[value.status.state])
    if ($case === 'artifactUpdate') answer = (value.append ? answer : '') + texts(value.artifact.parts)
  }
  return { answer, seen: seen.join(' ') }
}

if (kind === 'quiet') { // a server with two agents, one of which has structured output
  out.quiet = (await all(client.sendMessageStream(message(`slow quiet-a2a-${binding}`)))).answer
  const finder = await factory.createFromUrl(base, '/a2a/finder/.well-known/agent-card.json')
  out.prose = shown(await finder.sendMessage(message('prose')))
  console.log(JSON.stringify(out))
  process.exit()
}
const first = await client.sendMessage(message('hello'))
out.text = shown(first)
out.history = (await client.sendMessage(message('again', { message: { contextId: first.contextId } }))).contextId === first.contextId
out.failed = shown(await client.sendMessage(message('fail')))
out.both = shown(await client.sendMessage(message('both Oslo')))
out.stream = await all(client.sendMessageStream(message('look Oslo')))
let task = await client.sendMessage(message('pay 1'))
out.question = shown(task) + asked(task).map((a) => a.call.name).join()
const yes = (t, more) => ({ pawl: asked(t).map((a) => ({ key: a.key, digest: a.digest, approve: true, ...more })) })
out.approved = shown(await client.sendMessage(message(yes(task), { message: { taskId: task.id } })))
task = await client.sendMessage(message('pay 2'))
out.denied = shown(await client.sendMessage(message('yes', { message: { taskId: task.id } })))
task = await client.sendMessage(message('pay 3'))
out.edited = shown(await client.sendMessage(message(yes(task, { args: { invoice: 30 } }), { message: { taskId: task.id } })))
task = await client.sendMessage(message('pay 4'))
out.streamed = await all(client.sendMessageStream(message(yes(task), { message: { taskId: task.id } })))
out.get = shown(await client.getTask({ tenant: '', id: task.id, historyLength: 0 }))
task = await client.sendMessage(message('pay 13'))
out.failedWrite = shown(await client.sendMessage(message(yes(task), { message: { taskId: task.id } })))
const id = randomUUID()
const twice = await Promise.all([1, 2].map(() => client.sendMessage(message('pay 5', { message: { messageId: id } }))))
out.twice = twice[0].id === twice[1].id
out.cancelled = shown(await client.cancelTask({ tenant: '', id: twice[0].id, metadata: undefined }))
out.cancelOver = await failure(() => client.cancelTask({ tenant: '', id: twice[0].id, metadata: undefined }))
out.unknown = await failure(() => client.getTask({ tenant: '', id: 'a2a_none', historyLength: 0 }))
out.listed = (await client.listTasks({ tenant: '', contextId: first.contextId, status: 0, pageSize: 10, pageToken: '', statusTimestampAfter: undefined, includeArtifacts: false })).tasks.length
const gone = new AbortController()
let left
try {
  for await (const e of client.sendMessageStream(message('wait'), { signal: gone.signal })) {
    if (e.payload.$case === 'task') left = e.payload.value.id
    gone.abort()
  }
} catch { /* the client has disconnected */ }
const release = () => fetch(base + '/test/release', { method: 'POST' })
out.disconnected = await all(client.resubscribeTask({ tenant: '', id: left }), release)
const begun = await client.sendMessage(message('wait', { request: { configuration: { acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: undefined } } }))
out.subscribed = await all(client.resubscribeTask({ tenant: '', id: begun.id }), release)
console.log(JSON.stringify(out))
