import { Session } from 'node:inspector'

/** Milliseconds until a thread that runs native code is given up. */
const TIMEOUT_MS = 1000
const MAX_FRAMES = 20

interface Frame {
  readonly functionName: string
  readonly location: { readonly scriptId: string; readonly lineNumber: number; readonly columnNumber: number }
}

/** A message of the debugger of a worker. */
interface DebuggerMessage {
  readonly method?: string
  readonly params?: { readonly callFrames?: readonly Frame[]; readonly scriptId?: string; readonly url?: string }
}

/**
 * The stack of a worker thread whose event loop is blocked, innermost function first: `name file:line`. The thread stops for less than a millisecond.
 * Undefined if it runs no JavaScript.
 */
export async function stackOf(threadId: number): Promise<string[] | undefined> {
  const session = new Session()
  session.connect()
  const { promise, resolve } = Promise.withResolvers<string[] | undefined>()
  const timer = setTimeout(() => resolve(undefined), TIMEOUT_MS)
  const files = new Map<string, string>()
  const send = (sessionId: string, method: string): void =>
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id: 1, method }) })
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    if (!workerInfo.title.startsWith(`[worker ${threadId}]`)) return
    send(sessionId, 'Debugger.enable')
    send(sessionId, 'Debugger.pause')
  })
  session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
    const { method, params } = JSON.parse(message) as DebuggerMessage
    if (method === 'Debugger.scriptParsed') files.set(params?.scriptId ?? '', params?.url ?? '')
    if (method !== 'Debugger.paused') return
    resolve(params?.callFrames?.slice(0, MAX_FRAMES).map((frame) => describe(frame, files)))
    send(sessionId, 'Debugger.resume')
    session.post('NodeWorker.detach', { sessionId })
  })
  try {
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    return await promise
  } finally {
    clearTimeout(timer)
    session.disconnect()
  }
}

function describe({ functionName, location }: Frame, files: ReadonlyMap<string, string>): string {
  const file = files.get(location.scriptId)?.split('/').slice(-3).join('/') ?? ''
  return `${functionName === '' ? '(anonymous)' : functionName} ${file}:${location.lineNumber + 1}`
}
