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

/** Work between two yields: characters outside strings, and more for each string. Takes a millisecond at most. */
const STEP_WORK = 16_384
const STRING_WORK = 16

/**
 * The name of a member that an object has twice, or that is a JSON-RPC member in another spelling, such as `Method`. Parsers differ in which
 * member they use, so the target could run another request than the gateway checked. Checks the message, `params`, `params.ref` and
 * `params._meta`, and with `checksArguments` all of `params.arguments`, which rules can read. Undefined if there is none. `text` is valid
 * JSON. Yields about every millisecond.
 */
export function* findAmbiguousMember(text: string, checksArguments: boolean): Generator<undefined, string | undefined, undefined> {
  const levels: Level[] = []
  let level: Level | undefined
  let work = 0
  for (let at = 0; at < text.length; at++) {
    if (++work >= STEP_WORK) {
      work = 0
      yield
    }
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const start = at
        for (at = text.indexOf('"', at + 1); isEscaped(text, at); at = text.indexOf('"', at + 1)) {
          work += STRING_WORK
          if (work >= STEP_WORK) {
            work = 0
            yield
          }
        }
        work += STRING_WORK
        if (level?.expectsName !== true) break
        level.expectsName = false
        if (level.place === 'other') break
        level.name = nameIn(text.slice(start, at + 1))
        if (isAmbiguous(level)) return level.name
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

/** Whether the quote at this position is escaped by an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let slashes = 0
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++
  return slashes % 2 === 1
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
