import type { Overview } from '#api/management/overview.ts'
import type { RouteSummary } from '#api/management/routes.ts'

/** A place where a route leads to an LLM. */
export interface Place {
  readonly listener: string
  /** Host and path before that of the format, such as `llm.example/v1`. */
  readonly base: string
}

/** The places of all routes, in their order. */
export function findPlaces({ listeners, backends }: Overview, routes: readonly RouteSummary[]): Place[] {
  const keys = new Set(backends.filter(({ kind }) => kind === 'ai').map(({ key }) => key))
  const places = routes.flatMap((route) => {
    const listener = listeners.find(({ key }) => route.listeners.includes(key))
    if (listener === undefined) return []
    const host = (route.hostnames[0] ?? listener.hostname ?? 'localhost').replace('*', 'llm')
    const rules = route.rules.filter((rule) => rule.backends.some(({ key }) => keys.has(key)))
    return rules.flatMap(({ matches }) => matches.map(({ path }) => ({ listener: listener.key, base: `${host}${basePath(path)}` })))
  })
  return [...new Map(places.map((place) => [place.base, place])).values()]
}

/** The path before that of the format: clients add it to a base that ends with `/v1`. */
function basePath({ type, value }: { readonly type: string; readonly value: string }): string {
  if (type === 'RegularExpression') return '/v1'
  const end = /\/v1(?:\/|$)/.exec(value)
  return end === null ? `${value.replace(/\/$/, '')}/v1` : value.slice(0, end.index + 3)
}

interface PlaceFieldsProps {
  readonly data: Overview
  readonly places: readonly Place[]
  readonly place: Place
  readonly onChange: (place: Partial<Place>) => void
}

/** Host, path and listener of a request to an LLM. */
export function PlaceFields({ data, places, place, onChange }: PlaceFieldsProps) {
  const listeners = data.listeners.filter(({ protocol }) => protocol === 'HTTP' || protocol === 'HTTPS')
  return (
    <>
      <label class="grow">
        Host and path
        <input
          class="mono"
          data-search
          list="places"
          value={place.base}
          spellcheck={false}
          onInput={({ currentTarget: { value } }) => onChange({ base: value, ...places.find(({ base }) => base === value) })}
        />
        <datalist id="places">
          {places.map(({ base }) => (
            <option key={base} value={base} />
          ))}
        </datalist>
      </label>
      <label>
        Listener
        <select value={place.listener} onChange={({ currentTarget }) => onChange({ listener: currentTarget.value })}>
          {listeners.map(({ key, protocol, port }) => (
            <option key={key} value={key}>{`${key} (${protocol} ${port})`}</option>
          ))}
        </select>
      </label>
    </>
  )
}
