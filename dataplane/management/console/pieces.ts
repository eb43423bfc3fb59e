import { setImmediate } from 'node:timers/promises'
import type { Context } from 'hono'

const ENTRIES_PER_PIECE = 50

/** Sends a large object as JSON in pieces, with a turn of the event loop between them. */
export function sendPieces(c: Context, value: object): never {
  return sendText(c, printPieces(value))
}

/** Sends JSON that is printed in pieces. The type of a body in pieces is unknown to the route, whose schema describes it. */
export function sendText(c: Context, pieces: AsyncIterable<string>): never {
  return c.body(ReadableStream.from(encode(pieces)), 200, { 'content-type': 'application/json; charset=utf-8' }) as never
}

async function* encode(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for await (const piece of pieces) {
    yield encoder.encode(piece)
    await setImmediate()
  }
}

/** JSON of an object; lists in it are split. */
async function* printPieces(value: object): AsyncGenerator<string, void> {
  let text = '{'
  let isFirst = true
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    if (member === undefined) continue
    text += `${isFirst ? '' : ','}${JSON.stringify(name)}:`
    isFirst = false
    if (Array.isArray(member)) {
      for (let at = 0; at < member.length; at += ENTRIES_PER_PIECE) {
        const part = JSON.stringify(member.slice(at, at + ENTRIES_PER_PIECE))
        yield `${text}${at === 0 ? '[' : ','}${part.slice(1, -1)}`
        text = ''
      }
      text += member.length === 0 ? '[]' : ']'
    } else if (typeof member === 'object' && member !== null) {
      yield text
      text = ''
      yield* printPieces(member)
    } else text += JSON.stringify(member)
  }
  yield `${text}}`
}
