import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function connect(run: ExampleRun): Promise<Client> {
  const client = new Client({ name: 'example', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`)))
  return client
}

/** Lists tools until one has the name. */
async function untilOffered(run: ExampleRun, name: string): Promise<void> {
  const client = await connect(run)
  const deadline = Date.now() + 60_000
  for (;;) {
    const { tools } = await client.listTools()
    if (tools.some((tool) => tool.name === name)) return client.close()
    if (Date.now() > deadline) throw new Error(`${name} is not offered`)
  }
}

export default expectations({
  'an SDK client sees hints and schemas, with recursive ones as definitions': async (run) => {
    const client = await connect(run)
    const { tools } = await client.listTools()
    await client.close()
    expect(tools.map(({ name, annotations }) => [name, annotations])).toEqual([
      ['listPets', { readOnlyHint: true }],
      ['add_pet', { readOnlyHint: false }],
      ['getPet', { readOnlyHint: true }],
    ])
    expect(tools[1]?.inputSchema).toMatchObject({ properties: { body: { $ref: '#/$defs/Pet' } }, required: ['body'] })
  },
  'the body of a call is the argument': async (run) => {
    const client = await connect(run)
    const body = { name: 'Rex', parents: [{ name: 'Fido' }] }
    await client.callTool({ name: 'add_pet', arguments: { body } })
    const failed = await client.callTool({ name: 'add_pet', arguments: { body: { name: 'Rex', parents: [{}] } } })
    await client.close()
    const [request] = run.upstream('pets').requests.slice(-1)
    expect([request?.method, request?.path, JSON.parse(request?.body ?? '')]).toEqual(['POST', '/v1/pets', body])
    expect(failed).toEqual({ content: [{ type: 'text', text: 'Invalid arguments: arguments.body.parents[0].name is required' }], isError: true })
  },
  'an edit of the document is in force for connected clients': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const text = await readFile(file, 'utf8')
    await untilOffered(run, 'listPets')
    await writeFile(file, text.replace('operationId: listPets', 'operationId: findPets'))
    await untilOffered(run, 'findPets')
    await writeFile(file, text)
    await untilOffered(run, 'listPets')
  },
})
