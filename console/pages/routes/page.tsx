import { location } from '../../ui/router.ts'
import { RouteListView } from './list.tsx'
import { RouteView } from './route.tsx'
import { TryView } from './try.tsx'

/** `#/routes` lists the routes, `#/routes/<kind>/<namespace>/<name>?rule=<index>` shows one, `#/routes/try` sends a request. */
export function RoutesPage() {
  const [, kind, namespace, name] = location.value.parts
  if (kind === 'try') return <TryView />
  if (kind === undefined || namespace === undefined || name === undefined) return <RouteListView />
  return <RouteView key={`${kind} ${namespace}/${name}`} kind={kind} namespace={namespace} name={name} />
}
