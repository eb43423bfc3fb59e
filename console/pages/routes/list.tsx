import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import type { RouteSummary } from '#api/management/routes.ts'
import { rowOf } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { linkTo, navigate } from '../../ui/router.ts'
import { formatMs, formatPercent, formatRate } from '../../ui/format.ts'
import { Badge, PageHead } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { backendTitle, isAdded, routeTitle } from '../../ui/short-form.ts'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { searchRoutes, type Found } from './search.ts'

/** Kept while other pages are open. */
const search = signal('')
const INTERVAL_MS = 4000
/** Rows that are drawn; a search finds the others. */
const MAX_RULES = 400

type Rule = RouteSummary['rules'][number]

export function RouteListView() {
  const { value, error } = useResource<{ readonly routes: readonly RouteSummary[] }>('/api/v1/routes', INTERVAL_MS)
  const [hasAdded, setAdded] = useState(false)
  const routes = value?.routes.filter((route) => hasAdded || !isAdded(route))
  const found = routes && searchRoutes(routes, search.value)
  return (
    <>
      <PageHead title="Routes">
        <input
          data-search
          type="search"
          class="grow"
          placeholder="Search hosts, paths, names, backends"
          aria-label="Search routes"
          value={search.value}
          onInput={({ currentTarget }) => (search.value = currentTarget.value)}
          onKeyDown={({ key }) => key === 'Enter' && open(found?.[0])}
        />
        <a class="button" href={linkTo(['routes', 'try'])}>
          Try it
        </a>
      </PageHead>
      {error && <ErrorBox title="The routes cannot be read" message={error.message} />}
      {found ? <Table found={found} total={routes.length} /> : !error && <Loading />}
      {value?.routes.some(isAdded) === true && (
        <button type="button" class="quiet" onClick={() => setAdded(!hasAdded)}>
          {hasAdded ? 'Hide' : 'Show'} the rules for lists of models and errors, which llm of the config file adds
        </button>
      )}
    </>
  )
}

const open = (first: Found | undefined): void => {
  if (first) navigate(['routes', first.route.kind, first.route.namespace, first.route.name], { rule: String(first.rules[0]?.index ?? 0) })
}

function Table({ found, total }: { readonly found: readonly Found[]; readonly total: number }) {
  if (total === 0)
    return (
      <Empty title="No route yet">
        <p>Apply an HTTPRoute whose parentRefs name a Gateway of this data plane; it appears here when it is in force.</p>
      </Empty>
    )
  if (found.length === 0)
    return (
      <Empty title="No route matches the search">
        <p>A word matches hosts, paths, names, listeners and backends. A path such as /cart/42 finds the rules that accept it.</p>
        <button type="button" onClick={() => (search.value = '')}>
          Clear the search
        </button>
      </Empty>
    )
  const rules = found.reduce((sum, each) => sum + each.rules.length, 0)
  return (
    <div class="panel">
      <Scroll label="Routes">
        <table class="routes">
          <thead>
            <tr>
              <th scope="col">Route and matches</th>
              <th scope="col">Backends</th>
              <th scope="col" class="num">
                Requests
              </th>
              <th scope="col" class="num">
                Errors
              </th>
              <th scope="col" class="num">
                p50
              </th>
              <th scope="col" class="num">
                p95
              </th>
            </tr>
          </thead>
          {limit(found).map((each) => (
            <Group key={each.route.key} {...each} />
          ))}
        </table>
      </Scroll>
      {rules > MAX_RULES && (
        <p class="more muted">
          The first {MAX_RULES} of {rules} rules. Search for the others.
        </p>
      )}
    </div>
  )
}

function limit(found: readonly Found[]): Found[] {
  let left = MAX_RULES
  return found.flatMap(({ route, rules }) => {
    const kept = rules.slice(0, left)
    left -= kept.length
    return kept.length > 0 ? [{ route, rules: kept }] : []
  })
}

function Group({ route, rules }: Found) {
  const stats = rowOf(`route ${route.namespace}/${route.name}`)
  const { title, kind } = routeTitle(route)
  const errors = stats && stats.requests > 0 ? (stats.serverErrors + stats.clientErrors) / stats.requests : 0
  return (
    <tbody>
      <tr class="route-head">
        <th scope="rowgroup" colSpan={2}>
          <a href={linkTo(['routes', route.kind, route.namespace, route.name])}>
            {kind === undefined ? (
              <>
                <span class="muted">{route.namespace}/</span>
                {route.name}
              </>
            ) : (
              title
            )}
          </a>
          <Badge>{kind ?? route.kind}</Badge>
          <span class="hosts">{route.hostnames.length === 0 ? 'any host' : route.hostnames.join(', ')}</span>
        </th>
        <td class="num">{stats ? formatRate(stats.requestsPerSecond) : <span class="muted">–</span>}</td>
        <td class={`num ${stats && stats.serverErrors > 0 ? 'is-bad' : ''}`}>{errors > 0 ? formatPercent(errors) : <span class="muted">–</span>}</td>
        <td class="num">{formatMs(stats?.p50Ms)}</td>
        <td class="num">{formatMs(stats?.p95Ms)}</td>
      </tr>
      {rules.map((rule) => (
        <RuleRow key={rule.index} route={route} rule={rule} />
      ))}
    </tbody>
  )
}

function RuleRow({ route, rule }: { readonly route: RouteSummary; readonly rule: Rule }) {
  const parts = ['routes', route.kind, route.namespace, route.name]
  const query = { rule: String(rule.index) }
  return (
    <tr class="is-link" onClick={() => navigate(parts, query)}>
      <td class="wrap">
        <div class="rule">
          <a class="rule-link" href={linkTo(parts, query)}>
            {rule.name ?? `#${rule.index}`}
          </a>
          <ul class="matches">
            {rule.matches.map((match, index) => (
              <li key={index}>
                <MatchText match={match} />
              </li>
            ))}
            {rule.matches.length === 0 && <li class="muted">all connections</li>}
            {rule.shadows.length > 0 && (
              <li title={rule.shadows.join('\n')}>
                <Badge tone="warn">{rule.shadows.length === 1 ? 'a match gets no requests' : `${rule.shadows.length} matches get no requests`}</Badge>
              </li>
            )}
          </ul>
        </div>
      </td>
      <td colSpan={5}>
        <Backends backends={rule.backends} />
      </td>
    </tr>
  )
}

/** A match as one line, with its value set off from its type. */
export function MatchText({ match }: { readonly match: Rule['matches'][number] }) {
  const { path, method, headers, queryParams } = match
  return (
    <span class="match">
      {method !== null && <b>{method} </b>}
      <code>{path.value}</code>
      <span class="muted"> {path.type === 'PathPrefix' ? 'prefix' : path.type === 'Exact' ? 'exact' : 'regular expression'}</span>
      {headers.map(({ name, type, value }, index) => (
        <span key={`h${index}`}>
          <span class="muted"> · header </span>
          <code>
            {name}
            {type === 'RegularExpression' ? ' ~ ' : '='}
            {value}
          </code>
        </span>
      ))}
      {queryParams.map(({ name, type, value }, index) => (
        <span key={`q${index}`}>
          <span class="muted"> · query </span>
          <code>
            {name}
            {type === 'RegularExpression' ? ' ~ ' : '='}
            {value}
          </code>
        </span>
      ))}
    </span>
  )
}

/** Backends with their share of the requests. */
export function Backends({ backends }: { readonly backends: Rule['backends'] }) {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0)
  if (backends.length === 0) return <span class="muted">none: the gateway responds itself</span>
  return (
    <ul class="backends">
      {backends.map(({ key, weight }, index) => (
        <li key={index}>
          <code>{backendTitle(key)}</code>
          {backends.length > 1 && <span class="muted"> {total === 0 ? '0 %' : formatPercent(weight / total)}</span>}
        </li>
      ))}
    </ul>
  )
}
