import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;

/** Threads, direct buffers, compression (zlib in native code), class loading, exceptions, and a child process. */
public class Guest {
    static long work(int n) throws Exception {
        Map<String, Integer> words = new TreeMap<>();
        for (int i = 0; i < 20000; i++) words.merge(Integer.toHexString(i * 7919 * n % 4099), 1, Integer::sum);
        byte[] text = words.toString().getBytes("UTF-8");
        CRC32 crc = new CRC32();
        for (int i = 0; i < 20; i++) {
            Deflater deflater = new Deflater();
            deflater.setInput(text);
            deflater.finish();
            byte[] packed = new byte[text.length + 100];
            int size = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, size);
            byte[] again = new byte[text.length];
            inflater.inflate(again);
            inflater.end();
            crc.update(again);
        }
        ByteBuffer[] buffers = new ByteBuffer[50];
        for (int i = 0; i < buffers.length; i++) buffers[i] = ByteBuffer.allocateDirect(10000 + i).putInt(0, i);
        return crc.getValue() + Arrays.stream(buffers).mapToInt(b -> b.getInt(0)).sum();
    }

    static int deep(int n) { return n == 0 ? Integer.parseInt("not a number") : deep(n - 1) + 1; }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> answers = new ArrayList<>();
        for (int i = 1; i <= 12; i++) { int n = i; answers.add(pool.submit(() -> work(n))); }
        for (Future<Long> answer : answers) System.out.println(answer.get());
        pool.shutdown();
        System.gc();
        try { deep(500); } catch (NumberFormatException e) { System.out.println(e.getMessage()); }
        try { int[] none = null; System.out.println(none.length); } catch (NullPointerException e) { System.out.println("null"); }
        System.out.println(IntStream.range(0, 100000).parallel().filter(i -> i % 3 == 0).count());
        Process child = new ProcessBuilder("sort", "-n").start();
        try (var in = child.getOutputStream()) { in.write("3\n1\n2\n".getBytes()); }
        System.out.print(new String(child.getInputStream().readAllBytes()));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("end")));
        System.exit(child.waitFor() + 5);
    }
}
