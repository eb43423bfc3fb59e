import type { Precedence } from '#api/management/routes.ts'
import { linkTo } from '../../ui/router.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'

/** Where each match of a rule stands among all matches of the listener and hostname, and which of them win over it. */
export function PrecedencePanel({ entries }: { readonly entries: readonly Precedence[] }) {
  return (
    <Panel title="Order of precedence" aside={<span>Matches of a host are tried in this order; the first that accepts the request wins</span>}>
      {entries.length === 0 ? (
        <Empty title="No order applies">
          <p>Only HTTP and gRPC rules are matched in order.</p>
        </Empty>
      ) : (
        <Scroll label="Places in the order">
          <table class="precedence">
            <thead>
              <tr>
                <th scope="col">Match</th>
                <th scope="col">Listeners and host</th>
                <th scope="col" class="num">
                  Place
                </th>
                <th scope="col">Wins over it</th>
              </tr>
            </thead>
            <tbody>
              {group(entries).map((entry, index) => (
                <tr key={index}>
                  <td class="wrap">
                    <code>{entry.match}</code>
                  </td>
                  <td>
                    {entry.listeners.map((listener) => (
                      <div key={listener}>{listener}</div>
                    ))}
                    <span class="muted">{entry.hostname ?? 'any host'}</span>
                  </td>
                  <td class="num">
                    <b>{entry.position}</b>
                    <span class="muted"> of {entry.of}</span>
                  </td>
                  <td class="wrap">
                    <Rivals rivals={entry.rivals} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  )
}

function Rivals({ rivals }: Pick<Precedence, 'rivals'>) {
  if (rivals.length === 0) return <Badge tone="good">nothing that matches the same requests</Badge>
  return (
    <ul class="rivals">
      {rivals.map(({ route, ruleIndex, match, reason }, index) => (
        <li key={index}>
          <code>{match}</code>
          <span class="muted"> of </span>
          <a href={linkTo(['routes', ...splitKey(route)], { rule: String(ruleIndex) })}>{route}</a>
          <span class="muted">: {reason}</span>
        </li>
      ))}
    </ul>
  )
}

/** `HTTPRoute ns/name` as its parts. */
function splitKey(key: string): string[] {
  const [kind = '', object = ''] = key.split(' ', 2)
  const slash = object.indexOf('/')
  return [kind, object.slice(0, slash), object.slice(slash + 1)]
}

/** Entries that differ in the listener only, as one. */
function group(entries: readonly Precedence[]): (Precedence & { readonly listeners: readonly string[] })[] {
  const groups = new Map<string, Precedence & { listeners: string[] }>()
  for (const entry of entries) {
    const key = JSON.stringify({ ...entry, listener: '' })
    const found = groups.get(key)
    if (found) found.listeners.push(entry.listener)
    else groups.set(key, { ...entry, listeners: [entry.listener] })
  }
  return [...groups.values()]
}
