import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { openStream } from '../message/reply.ts'
import type { OnGone } from '../session/sharing.ts'
import type { WaitingCalls } from '../session/waiting.ts'
import { readMessage, resumeCall, type ProcessCalls, type ResumeMessage } from '../run/inputs.ts'
import type { PendingCall } from '../run/pending-call.ts'

/** As `resumeForWorker`, to another replica: the call may wait in another worker of this one. */
export async function resumeForPeer({ waiting, messages }: ProcessCalls, text: string, onGone: OnGone): Promise<ResponseHead> {
  const message = await readMessage(text)
  return await (messages?.send(message.call, text, onGone) ?? resume(waiting, message))
}

/** The response to another worker that passes on the retry of a call (mcp.md §13.2): 200 with the events of the call, 404 if it does not wait, 400 if it is another client's. */
export const resumeForWorker = async (waiting: WaitingCalls<PendingCall>, text: string): Promise<ResponseHead> => resume(waiting, await readMessage(text))

async function resume(waiting: WaitingCalls<PendingCall>, message: ResumeMessage): Promise<ResponseHead> {
  const events = await resumeCall(waiting, message)
  if (events === undefined || events === 'invalid') {
    const status = events === undefined ? 404 : 400
    return { status, headers: new HeaderList(['content-length', '0']), body: undefined, upgraded: undefined }
  }
  const body = openStream(
    (out) => {
      events.start({ onEvent: (event) => out.write(event), onEnd: () => out.end(), onError: (error) => out.fail(error) })
      return { onPressure: (isBehind) => (isBehind ? events.pause() : events.resume()), onClose: () => events.cancel() }
    },
    () => undefined,
  )
  return { status: 200, headers: new HeaderList(['content-type', 'text/event-stream']), body, upgraded: undefined }
}
