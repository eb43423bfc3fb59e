import type { PluginData, ToPlugin } from './messages.ts'
import { encodeFrame, MessageReader } from './frames.ts'
import { servePlugin } from './serve-plugin.ts'

/** In TypeScript since its types for Node know it. */
interface Permission {
  drop(scope: string): void
}

const { stdin, stdout } = process
// All modules are loaded: the plugin cannot read files, those of the program included.
;(process as unknown as { readonly permission: Permission }).permission.drop('fs.read')

let receive: ((message: ToPlugin) => void) | undefined
const reader = new MessageReader((message) => {
  // The first message has the plugin.
  if (receive === undefined) receive = servePlugin(message as PluginData, (sent) => void stdout.write(encodeFrame(sent)))
  else receive(message as ToPlugin)
})
const { exit } = process
stdin.on('data', (chunk: Buffer) => reader.push(chunk))
// The data plane has ended, or does not need the plugin any more.
stdin.on('end', () => exit(0))
