import { isOut, scoreOf, type EndpointState, type PickNotes } from './balancer.ts'

/** Why an endpoint was picked, as a sentence without a period. `avoided`: the endpoint of the failed attempt. */
export function explainPick(picked: EndpointState, { compared, endpoints, available, by }: PickNotes, avoided?: EndpointState): string {
  if (endpoints.length === 1) return picked.draining ? 'the only endpoint, although it is draining' : 'the only endpoint'
  const evicted = endpoints.filter((endpoint) => endpoint.evicted !== undefined).length
  const failing = endpoints.filter(isOut).length - evicted
  const isPanic = available.some(isOut)
  const distant = endpoints.length - available.length - (isPanic ? 0 : evicted + failing)
  const out = [...(evicted > 0 ? [`${evicted} evicted`] : []), ...(failing > 0 ? [`${failing} failing health checks`] : [])].join(' and ')
  const notes = [
    ...(out === '' ? [] : [isPanic ? `${out} and used nevertheless, by panicThreshold` : out]),
    ...(available.length > 0 && distant > 0 ? [`${distant} farther away`] : []),
  ]
  const set =
    available.length === 0
      ? `${endpoints.length} endpoints, all ${failing === 0 ? 'evicted' : 'evicted or failing health checks'} and used nevertheless`
      : `${available.length} available endpoint${available.length === 1 ? '' : 's'}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`
  if (available.length === 1) return `the only one of ${set}`
  if (avoided !== undefined && picked !== avoided && (compared.includes(avoided) || !compared.includes(picked)))
    return `one of ${set}, other than ${avoided.label}, whose attempt failed`
  if (by !== undefined && compared.length === 0) return `${by} ${set}`
  const [other] = compared.filter((endpoint) => endpoint !== picked)
  if (other === undefined) return `a random one of ${set}`
  return `the better of two random ones of ${set}: score ${format(picked)} against ${format(other)} of ${other.label}`
}

const format = (endpoint: EndpointState): string => scoreOf(endpoint).toFixed(3)
