import { computed, signal } from '@preact/signals'

const read = (): string => globalThis.location.hash.replace(/^#\/?/, '')

const hash = signal(read())
globalThis.addEventListener('hashchange', () => (hash.value = read()))

/** The parts of the location, decoded: `#/routes/HTTPRoute/default/shop?rule=1` is `['routes', 'HTTPRoute', 'default', 'shop']`. */
export const location = computed(() => {
  const [path = '', query = ''] = hash.value.split('?', 2)
  return { parts: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
})

/** The href of a location. */
export function linkTo(parts: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(query).toString()
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

export function navigate(parts: readonly string[], query?: Readonly<Record<string, string>>): void {
  globalThis.location.hash = linkTo(parts, query)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
