import { useState } from 'preact/hooks'
import type { EffectivePolicy } from '#api/management/routes.ts'
import { policyManifest, type PolicyTarget } from '../../ui/manifest.ts'
import { Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import { ValueText } from '../../ui/value.tsx'
import { toLines } from './lines.ts'

type Field = EffectivePolicy['postRouting'][string]
type Source = Field['sources'][number]

/** The policies in force for a rule: each field with the object and the level that it came from, and what it overrode. */
export function PolicyPanel({ policies, route }: { readonly policies: readonly EffectivePolicy[]; readonly route: PolicyTarget }) {
  const groups = group(policies)
  const [selected, setSelected] = useState(0)
  const current = groups[selected] ?? groups[0]
  const fields = current ? fieldsOf(current.policy) : []
  return (
    <Panel
      title="Effective policy"
      aside={
        groups.length > 1 ? (
          groups.map(({ label }, index) => (
            <button key={label} type="button" class="quiet" aria-pressed={index === selected} onClick={() => setSelected(index)}>
              {label}
            </button>
          ))
        ) : (
          <span>{current?.label}</span>
        )
      }
    >
      {fields.length === 0 ? (
        <Empty title="No policy applies to this rule">
          <p>A ProxyPolicy whose targetRefs name the Gateway, a listener, this route, or one of its Services changes that.</p>
          {(route.kind === 'HTTPRoute' || route.kind === 'GRPCRoute') && (
            <pre class="text">{policyManifest(route.name, route, ['traffic:', '  timeouts:', '    request: 10s'])}</pre>
          )}
        </Empty>
      ) : (
        <Scroll label="Fields of the policy">
          <table class="policy">
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Value in force</th>
                <th scope="col">From</th>
                <th scope="col">Overrides</th>
              </tr>
            </thead>
            <tbody>
              {fields.map(({ name, level, field }) => (
                <tr key={`${level} ${name}`}>
                  <th scope="row">
                    {name}
                    {level !== '' && <span class="muted"> {level}</span>}
                  </th>
                  <td class="wrap">
                    <ValueText>{toLines(field.value)}</ValueText>
                  </td>
                  <td>
                    <Sources sources={field.sources} />
                  </td>
                  <td class="overridden">{field.overrides.length === 0 ? <span class="muted">–</span> : <Sources sources={field.overrides} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  )
}

/** Fields of the traffic, and those of the connection to each backend. The backend is named if there are several. */
function fieldsOf({ preRouting, postRouting, backends = {} }: EffectivePolicy) {
  const names = Object.keys(backends)
  return [
    ...toFields(preRouting, 'before routing'),
    ...toFields(postRouting, ''),
    ...names.flatMap((name) => toFields(backends[name] ?? {}, names.length > 1 ? `to ${name}` : '')),
  ]
}

const toFields = (fields: Readonly<Record<string, Field>>, level: string) => Object.entries(fields).map(([name, field]) => ({ name, level, field }))

function Sources({ sources }: { readonly sources: readonly Source[] }) {
  return (
    <ul class="sources">
      {sources.map(({ from, target }, index) => (
        <li key={index}>
          {from}
          <span class="muted"> on {target}</span>
        </li>
      ))}
    </ul>
  )
}

/** Listeners with the same policies as one entry. */
function group(policies: readonly EffectivePolicy[]): { readonly label: string; readonly policy: EffectivePolicy }[] {
  const groups = new Map<string, { listeners: string[]; policy: EffectivePolicy }>()
  for (const policy of policies) {
    const key = JSON.stringify({ ...policy, listener: '' })
    const found = groups.get(key)
    if (found) found.listeners.push(policy.listener)
    else groups.set(key, { listeners: [policy.listener], policy })
  }
  return [...groups.values()].map(({ listeners, policy }) => ({
    policy,
    label: `${listeners.join(', ')}${policy.service === null ? '' : ` to Service ${policy.service}`}`,
  }))
}
