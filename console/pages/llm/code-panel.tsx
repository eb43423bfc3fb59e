import { signal } from '@preact/signals'
import { Panel } from '../../ui/panel.tsx'
import type { Chat } from './chat.ts'
import { clientsOf, writeCode, type Client } from './code.ts'

const client = signal<Client>('curl')

/** The request as code of a client. */
export function CodePanel({ chat, endpoint }: { readonly chat: Chat; readonly endpoint: Parameters<typeof writeCode>[2] }) {
  const choices = clientsOf(chat)
  const chosen = choices.includes(client.value) ? client.value : 'curl'
  return (
    <Panel
      title="As code"
      aside={
        <label>
          <select aria-label="Client" value={chosen} onChange={({ currentTarget }) => (client.value = currentTarget.value as Client)}>
            {choices.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
    >
      <pre class="text body" tabIndex={0} aria-label="Code">
        {read(chosen, chat, endpoint)}
      </pre>
    </Panel>
  )
}

function read(chosen: Client, chat: Chat, endpoint: Parameters<typeof writeCode>[2]): string {
  try {
    return writeCode(chosen, chat, endpoint)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
