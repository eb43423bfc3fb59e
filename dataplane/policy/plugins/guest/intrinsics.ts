// Captured before the plugin runs: the check must not depend on what it checks.
const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { keys } = Object
const toText = String

interface Member {
  readonly owner: object
  readonly path: string
  readonly key: PropertyKey
  readonly functions: readonly [value: unknown, get: unknown, set: unknown]
}

/** Objects whose enumerable members appear in every loop over keys. */
const everywhere = [Object.prototype, Array.prototype] as const

/** Prototypes that have no global name. */
function hiddenPrototypes(): [string, object | null][] {
  const prototypeOf = (value: object): object | null => getPrototypeOf(value)
  return [
    ['%TypedArray%', prototypeOf(Uint8Array)],
    ['%TypedArray%.prototype', prototypeOf(Uint8Array.prototype)],
    ['%ArrayIterator%.prototype', prototypeOf([][Symbol.iterator]())],
    ['%MapIterator%.prototype', prototypeOf(new Map()[Symbol.iterator]())],
    ['%SetIterator%.prototype', prototypeOf(new Set()[Symbol.iterator]())],
    ['%StringIterator%.prototype', prototypeOf(''[Symbol.iterator]())],
  ]
}

const isObject = (value: unknown): value is object => (typeof value === 'object' && value !== null) || typeof value === 'function'

/**
 * Records the functions of the objects of the language and of the platform in this thread, as they are now. Returns a check that names one which was
 * replaced or removed since, or a member that every object and array has got; undefined: nothing.
 */
export function watchIntrinsics(): () => string | undefined {
  const members: Member[] = []
  const add = (path: string, owner: object): void => {
    for (const key of ownKeys(owner)) {
      const { value, get, set } = getOwnPropertyDescriptor(owner, key) ?? {}
      // Globals with a getter are loaded when they are first read.
      if (typeof value === 'function' || (owner !== globalThis && (get ?? set) !== undefined))
        members.push({ owner, path: path === '' ? toText(key) : `${path}.${toText(key)}`, key, functions: [value, get, set] })
    }
  }
  add('', globalThis)
  for (const name of ownKeys(globalThis)) {
    const value: unknown = getOwnPropertyDescriptor(globalThis, name)?.value
    if (!isObject(value) || value === globalThis || name === 'console') continue
    add(toText(name), value)
    const prototype: unknown = getOwnPropertyDescriptor(value, 'prototype')?.value
    if (isObject(prototype)) add(`${toText(name)}.prototype`, prototype)
  }
  for (const [path, prototype] of hiddenPrototypes()) if (prototype !== null) add(path, prototype)
  const enumerable = everywhere.map((object) => keys(object).length)

  // By index, as the iterator of arrays may be what is broken.
  return () => {
    for (let at = 0; at < members.length; at++) {
      const { owner, path, key, functions } = members[at] as Member
      const now = getOwnPropertyDescriptor(owner, key)
      if (now === undefined) return `${path} was removed`
      if (now.value !== functions[0] || now.get !== functions[1] || now.set !== functions[2]) return `${path} was replaced`
    }
    for (let at = 0; at < everywhere.length; at++) {
      const names = keys(everywhere[at] as object)
      if (names.length > (enumerable[at] as number)) return `${at === 0 ? 'Object' : 'Array'}.prototype has the enumerable member ${names[names.length - 1]}`
    }
    return undefined
  }
}
