import { fold } from './names.ts'

/** Where an object stands in a message. Its members are checked unless it is `other`. */
type Place = 'message' | 'params' | 'flat' | 'deep' | 'other'

/** An open object or array. */
interface Level {
  readonly place: Place
  readonly isObject: boolean
  /** Names of the members so far. */
  names: string[] | Set<string>
  /** Name of the current member. */
  name: string
  expectsName: boolean
}

/** Arrays are searched faster than sets up to this size. */
const MAX_LISTED = 8

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c

/** Members of JSON-RPC. Some servers read another spelling, such as `Method`, as the same member. */
const DEFINED: readonly string[] = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']

/**
 * The name of a member that an object has twice, or that is a JSON-RPC member in another spelling, such as `Method`. Parsers differ in which
 * member they use, so the target could run another request than the gateway checked. Checks the message, `params`, `params.ref` and
 * `params._meta`, and with `checksArguments` all of `params.arguments`, which rules can read. Undefined if there is none. `text` is valid JSON.
 */
export function findAmbiguousMember(text: string, checksArguments: boolean): string | undefined {
  const levels: Level[] = []
  let level: Level | undefined
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfString(text, at)
        if (level?.expectsName === true) {
          level.expectsName = false
          if (level.place !== 'other') {
            level.name = nameIn(text.slice(at, end + 1))
            if (isAmbiguous(level)) return level.name
          }
        }
        at = end
        break
      }
      case 0x7b: // {
        if (level !== undefined) levels.push(level)
        level = { place: placeIn(level, checksArguments), isObject: true, names: [], name: '', expectsName: true }
        break
      case 0x5b: // [
        if (level !== undefined) levels.push(level)
        level = { place: placeIn(level, checksArguments), isObject: false, names: [], name: '', expectsName: false }
        break
      case 0x7d: // }
      case 0x5d: // ]
        level = levels.pop()
        break
      case COMMA:
        if (level?.isObject === true) level.expectsName = true
    }
  }
  return undefined
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end
  }
}

const nameIn = (literal: string): string => (literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1))

function placeIn(parent: Level | undefined, checksArguments: boolean): Place {
  if (parent === undefined) return 'message'
  if (parent.place === 'deep') return 'deep'
  if (parent.place === 'message') return parent.name === 'params' ? 'params' : 'other'
  if (parent.place !== 'params') return 'other'
  if (parent.name === 'arguments') return checksArguments ? 'deep' : 'other'
  return parent.name === 'ref' || parent.name === '_meta' ? 'flat' : 'other'
}

function isAmbiguous(level: Level): boolean {
  const { name, place } = level
  if (place === 'message' && !DEFINED.includes(name) && DEFINED.includes(fold(name))) return true
  if (Array.isArray(level.names)) {
    if (level.names.includes(name)) return true
    level.names.push(name)
    if (level.names.length > MAX_LISTED) level.names = new Set(level.names)
    return false
  }
  if (level.names.has(name)) return true
  level.names.add(name)
  return false
}
