import { expect } from '@jest/globals'
import { ClientFactory } from '@a2a-js/sdk/client'
import { messageOf } from '../../harness/upstream/agent.ts'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const connect = (run: ExampleRun) => new ClientFactory().createFromUrl(`http://localhost:${run.port(8080)}/agents/echo/`)
const request = (text: string) => ({ tenant: '', message: messageOf(text), configuration: undefined, metadata: undefined })
const hello = { parts: [{ content: { $case: 'text', value: 'echo: hello' } }] }

export default expectations({
  'an SDK client finds the agent by its card and sends messages through the gateway': async (run) => {
    const client = await connect(run)
    expect(await client.sendMessage(request('hello'))).toMatchObject(hello)
    await run.dataplane.program.waitForLine(/protocol=a2a a2a\.method=SendMessage a2a\.response\.outcome=success a2a\.result\.kind=message a2a\.context\.id=/)
  },
  'events of a streamed response pass': async (run) => {
    const client = await connect(run)
    const events = []
    for await (const { payload } of client.sendMessageStream(request('hello'))) events.push(payload)
    expect(events).toMatchObject([{ $case: 'message', value: hello }])
    await run.dataplane.program.waitForLine(/a2a\.method=SendStreamingMessage/)
  },
})
