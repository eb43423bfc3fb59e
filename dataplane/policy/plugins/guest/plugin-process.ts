import type { PluginData, ToPlugin } from './messages.ts'
import { encodeFrame, MessageReader } from './frames.ts'
import { limitProcess } from './limit-process.ts'
import { servePlugin } from './serve-plugin.ts'

const { stdin, stdout } = process
limitProcess(Number(process.argv[2]))

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
