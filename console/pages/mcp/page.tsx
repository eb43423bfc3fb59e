import { useEffect, useRef, useState } from 'preact/hooks'
import type { Overview } from '#api/management/overview.ts'
import { get } from '../../api/client.ts'
import { overview } from '../../api/live.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { Call, type Kind } from './call.tsx'
import { McpClient, type Target } from './client.ts'
import { Hidden } from './hidden.tsx'
import type { Item } from './item.ts'
import { Items, keyOf, type Lists } from './items.tsx'
import { Sessions } from './sessions.tsx'

interface Connection {
  readonly client: McpClient
  readonly lists: Lists
  readonly other: Lists | undefined
}

export function McpPage() {
  const data = overview.value
  const servers = useServers()
  if (data === undefined) return <Loading />
  const backends = data.backends.filter(({ kind }) => kind === 'mcp')
  return (
    <>
      <PageHead title="MCP">
        <span class="muted">calls pass through a listener of the gateway, with its policies</span>
      </PageHead>
      {backends.length === 0 ? (
        <Panel title="Servers">
          <Empty title="No backend serves MCP">
            <code>make run DIR=e2e/examples/mcp-federation</code>
          </Empty>
        </Panel>
      ) : (
        <Explorer data={data} servers={servers} />
      )}
    </>
  )
}

function Explorer({ data, servers }: { readonly data: Overview; readonly servers: readonly Server[] }) {
  const [connection, setConnection] = useState<Connection>()
  const [error, setError] = useState<string>()
  const [selected, setSelected] = useState<{ readonly kind: Kind; readonly item: Item }>()
  const opened = useRef<McpClient>(null)
  useEffect(() => () => void opened.current?.close().catch(() => undefined), [])
  const connect = async (target: Target, otherToken: string): Promise<void> => {
    setError(undefined)
    await opened.current?.close().catch(() => undefined)
    const client = new McpClient(target)
    opened.current = client
    await client.open()
    const lists = await readLists(client)
    setConnection({ client, lists, other: otherToken === '' ? undefined : await readAs({ ...target, token: otherToken }) })
  }
  const select = (kind: Kind) => (item: Item) => setSelected({ kind, item })
  const chosen = selected && `${selected.kind} ${keyOf(selected.kind, selected.item)}`
  return (
    <>
      <Servers servers={servers} />
      <Sessions />
      <Connect
        data={data}
        onConnect={(target, otherToken) => {
          connect(target, otherToken).catch((failure: Error) => {
            setConnection(undefined)
            setError(failure.message)
          })
        }}
      />
      {error !== undefined && <ErrorBox title="The session was not opened" message={error} />}
      {connection !== undefined && (
        <div class="split">
          <div>
            {(['tool', 'prompt', 'resource'] as const).map((kind) => (
              <Items
                key={kind}
                kind={kind}
                lists={connection.lists}
                other={connection.other}
                targets={servers.map(({ target }) => target)}
                selected={chosen ?? ''}
                onSelect={select(kind)}
              />
            ))}
            <Hidden title={connection.other === undefined ? 'Not visible' : 'Not visible to the first token'} items={connection.lists.hidden} />
            <Hidden title="Not visible to the second token" items={connection.other?.hidden ?? []} />
          </div>
          {selected === undefined ? (
            <Panel title={connection.client.server}>
              <Empty title="Select a tool, prompt or resource" />
            </Panel>
          ) : (
            <Call key={chosen} kind={selected.kind} item={selected.item} client={connection.client} />
          )}
        </div>
      )}
    </>
  )
}

function Connect({ data, onConnect }: { readonly data: Overview; readonly onConnect: (target: Target, otherToken: string) => void }) {
  const listeners = data.listeners.filter(({ protocol }) => protocol === 'HTTP' || protocol === 'HTTPS')
  const backends = new Set(data.backends.filter(({ kind }) => kind === 'mcp').map(({ key }) => key))
  const route = data.routes.find((candidate) => candidate.backends.some((key) => backends.has(key)))
  const first = listeners.find(({ key }) => route?.listeners.includes(key)) ?? listeners[0]
  const [target, setTarget] = useState<Target>({
    listener: first?.key ?? '',
    host: (route?.hostnames[0] ?? first?.hostname ?? 'localhost').replace('*', 'mcp'),
    path: '/mcp',
    token: '',
  })
  const [otherToken, setOtherToken] = useState('')
  const text = (name: 'host' | 'path') => (
    <input class="mono" value={target[name]} onInput={(event) => setTarget({ ...target, [name]: event.currentTarget.value })} />
  )
  return (
    <Panel title="Explore as a client">
      <form
        class="body row"
        onSubmit={(event) => {
          event.preventDefault()
          onConnect(target, otherToken)
        }}
      >
        <label>
          Listener
          <select value={target.listener} onChange={(event) => setTarget({ ...target, listener: event.currentTarget.value })}>
            {listeners.map(({ key }) => (
              <option key={key} value={key}>
                {key}
              </option>
            ))}
          </select>
        </label>
        <label>Host {text('host')}</label>
        <label>Path {text('path')}</label>
        <label class="grow">
          As whom: bearer token
          <input
            class="mono"
            type="password"
            autocomplete="off"
            value={target.token}
            onInput={(event) => setTarget({ ...target, token: event.currentTarget.value })}
          />
        </label>
        <label class="grow">
          Compare with: second token
          <input class="mono" type="password" autocomplete="off" value={otherToken} onInput={(event) => setOtherToken(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Connect
        </button>
      </form>
    </Panel>
  )
}

async function readLists(client: McpClient): Promise<Lists> {
  const tools = await client.list('tools/list', 'tools')
  const prompts = await client.list('prompts/list', 'prompts')
  const resources = await client.list('resources/list', 'resources')
  return { tool: tools.items, prompt: prompts.items, resource: resources.items, hidden: [tools, prompts, resources].flatMap(({ hidden }) => hidden) }
}

async function readAs(target: Target): Promise<Lists> {
  const client = new McpClient(target)
  await client.open()
  try {
    return await readLists(client)
  } finally {
    await client.close().catch(() => undefined)
  }
}

interface Server {
  readonly backend: string
  readonly target: string
  readonly address: string
}

function Servers({ servers }: { readonly servers: readonly Server[] }) {
  return (
    <Panel title="Servers" aside={`${servers.length}`}>
      <Scroll label="List of servers">
        <table>
          <thead>
            <tr>
              <th>Backend</th>
              <th>Name</th>
              <th>Address</th>
            </tr>
          </thead>
          <tbody>
            {servers.map(({ backend, target, address }) => (
              <tr key={`${backend} ${target}`}>
                <td class="mono">{backend}</td>
                <td class="mono">{target}</td>
                <td class="mono wrap">{address}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}

interface ConfigBackend {
  readonly key?: string
  readonly mcp?: {
    readonly targets?: readonly (Readonly<Record<string, unknown>> & { readonly name?: string; readonly static?: Readonly<Record<string, unknown>> })[]
  }
}

/** The settings of a target in one line: `host: localhost, port: 9001`. */
function describeTarget(settings: Readonly<Record<string, unknown>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

/** The targets of MCP backends in the config in force. */
function useServers(): readonly Server[] {
  const [servers, setServers] = useState<readonly Server[]>([])
  useEffect(() => {
    const read = async (): Promise<void> => {
      const { backends = [] } = await get<{ readonly backends?: readonly ConfigBackend[] }>('/api/v1/config')
      setServers(
        backends.flatMap(({ key = '', mcp }) =>
          (mcp?.targets ?? []).map(({ name = '', static: host, ...rest }) => ({ backend: key, target: name, address: describeTarget(host ?? rest) })),
        ),
      )
    }
    void read().catch(() => undefined)
  }, [])
  return servers
}
