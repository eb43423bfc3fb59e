import type { RouteDetail } from '#api/management/routes.ts'
import { draft } from '../../api/draft.ts'
import { rowOf } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { linkTo, location, navigate } from '../../ui/router.ts'
import { formatMs, formatPercent, formatRate } from '../../ui/format.ts'
import { History } from '../../ui/history.tsx'
import { Badge, PageHead, Panel } from '../../ui/panel.tsx'
import { routeTitle } from '../../ui/short-form.ts'
import { ErrorBox, Loading } from '../../ui/states.tsx'
import { Backends, MatchText } from './list.tsx'
import { PolicyPanel } from './policy.tsx'
import { PrecedencePanel } from './precedence.tsx'
import { draftOf } from './sample.ts'

const INTERVAL_MS = 5000

type Rule = RouteDetail['rules'][number]

interface RouteViewProps {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

export function RouteView({ kind, namespace, name }: RouteViewProps) {
  const path = [kind, namespace, name].map(encodeURIComponent).join('/')
  const { value, error } = useResource<RouteDetail>(`/api/v1/routes/${path}`, INTERVAL_MS)
  const written = value && routeTitle(value)
  const wanted = Number(location.value.query.get('rule') ?? 0)
  const rule = value?.rules.find(({ index }) => index === wanted) ?? value?.rules[0]
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumbs">
        <a href={linkTo(['routes'])}>Routes</a>
      </nav>
      <PageHead title={written?.title ?? `${namespace}/${name}`}>
        <Badge>{written?.kind ?? kind}</Badge>
        <span class="grow" />
        {value && rule && (kind === 'HTTPRoute' || kind === 'GRPCRoute') && (
          <button type="button" class="primary" onClick={() => tryOut(value, rule)}>
            Try it
          </button>
        )}
      </PageHead>
      {error && <ErrorBox title={error.status === 404 ? 'This route is not in force' : 'The route cannot be read'} message={error.message} />}
      {value ? <Route route={value} rule={rule} /> : !error && <Loading />}
    </>
  )
}

function tryOut(route: RouteDetail, rule: Rule): void {
  draft.value = draftOf(route, rule)
  navigate(['routes', 'try'])
}

function Route({ route, rule }: { readonly route: RouteDetail; readonly rule: Rule | undefined }) {
  const key = `route ${route.namespace}/${route.name}`
  return (
    <>
      <dl class="facts">
        <div>
          <dt>Hosts</dt>
          <dd>{route.hostnames.length === 0 ? 'any' : route.hostnames.join(', ')}</dd>
        </div>
        <div>
          <dt>Listeners</dt>
          <dd>{route.listeners.join(', ')}</dd>
        </div>
        {route.createdAt !== null && (
          <div>
            <dt>Created</dt>
            <dd>{route.createdAt}</dd>
          </div>
        )}
      </dl>
      <Numbers of={key} />
      <History of={key} />
      {route.rules.length > 1 && <RuleTabs route={route} current={rule} />}
      {rule && <RuleView key={rule.index} route={route} rule={rule} />}
    </>
  )
}

function Numbers({ of }: { readonly of: string }) {
  const stats = rowOf(of)
  const part = (count: number | undefined): string => (stats && stats.requests > 0 ? formatPercent((count ?? 0) / stats.requests) : '–')
  const tiles = [
    ['Requests', stats ? formatRate(stats.requestsPerSecond) : '–', ''],
    ['5xx', part(stats?.serverErrors), stats && stats.serverErrors > 0 ? 'is-bad' : ''],
    ['4xx', part(stats?.clientErrors), stats && stats.clientErrors > 0 ? 'is-warn' : ''],
    ['p50', formatMs(stats?.p50Ms), ''],
    ['p95', formatMs(stats?.p95Ms), ''],
  ] as const
  return (
    <dl class="tiles">
      {tiles.map(([label, text, tone]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd class={tone}>{text}</dd>
        </div>
      ))}
    </dl>
  )
}

function RuleTabs({ route, current }: { readonly route: RouteDetail; readonly current: Rule | undefined }) {
  return (
    <nav class="tabs" aria-label="Rules">
      {route.rules.map((rule) => (
        <a
          key={rule.index}
          href={linkTo(['routes', route.kind, route.namespace, route.name], { rule: String(rule.index) })}
          aria-current={rule === current ? 'true' : undefined}
        >
          {rule.name ?? `Rule ${rule.index}`}
        </a>
      ))}
    </nav>
  )
}

function RuleView({ route, rule }: { readonly route: RouteDetail; readonly rule: Rule }) {
  return (
    <>
      <Panel title={`Rule ${rule.name ?? rule.index}`}>
        <dl class="pairs body">
          <dt>Matches</dt>
          <dd>
            <ul class="matches">
              {rule.matches.map((match, index) => (
                <li key={index}>
                  <MatchText match={match} />
                </li>
              ))}
              {rule.matches.length === 0 && <li class="muted">all connections</li>}
            </ul>
          </dd>
          {rule.shadows.length > 0 && (
            <>
              <dt>Without requests</dt>
              <dd>
                <ul class="matches">
                  {rule.shadows.map((text) => (
                    <li key={text} class="is-bad">
                      {text}
                    </li>
                  ))}
                </ul>
              </dd>
            </>
          )}
          <dt>Backends</dt>
          <dd>
            <Backends backends={rule.backends} />
          </dd>
        </dl>
      </Panel>
      <PrecedencePanel entries={rule.precedence} />
      <PolicyPanel policies={rule.effective} route={route} />
      <Panel title="The rule as the data plane received it">
        <details class="body">
          <summary>Show JSON</summary>
          <pre class="text" tabIndex={0} aria-label="The rule as JSON">
            {JSON.stringify(rule.message, null, 2)}
          </pre>
        </details>
      </Panel>
    </>
  )
}
