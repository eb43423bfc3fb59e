import type { Problem } from '#api/management/overview.ts'
import { linkTo } from '../../ui/router.ts'
import { Badge, Panel } from '../../ui/panel.tsx'

const SHOWN = 20

/** Problems of the gateway, errors first. Nothing if there are none. */
export function Problems({ problems }: { readonly problems: readonly Problem[] }) {
  if (problems.length === 0) return null
  return (
    <Panel title={problems.length === 1 ? 'One problem' : `${problems.length} problems`} class="problems">
      <ul>
        {problems.slice(0, SHOWN).map((problem) => (
          <li key={`${problem.object}${problem.code}${problem.message}${problem.pod}`}>
            <Badge tone={problem.severity === 'error' ? 'bad' : 'warn'}>{problem.severity}</Badge>
            <div>
              <p>{problem.message}</p>
              <p class="muted">
                <Cause problem={problem} />
                {problem.code !== null && <code>proxyctl explain {problem.code}</code>}
                {problem.pod !== null && <span>pod {problem.pod}</span>}
              </p>
            </div>
          </li>
        ))}
      </ul>
      {problems.length > SHOWN && <p class="muted more">and {problems.length - SHOWN} more</p>}
    </Panel>
  )
}

/** A link to the object that the problem is about. */
function Cause({ problem: { object } }: { readonly problem: Problem }) {
  if (object === null) return null
  const [, kind, namespace, name] = /^route (\S+) ([^/]+)\/(.+)$/.exec(object) ?? []
  if (kind !== undefined && namespace !== undefined && name !== undefined) return <a href={linkTo(['routes', kind, namespace, name])}>{object}</a>
  if (object === 'budget' || object.startsWith('budget ')) return <a href={linkTo(['llm'])}>{object}</a>
  if (object === 'config') return <a href={linkTo(['config'])}>config</a>
  return <a href={linkTo(['overview'], { node: object })}>{object}</a>
}
