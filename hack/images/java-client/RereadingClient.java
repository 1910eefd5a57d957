import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * A client that reads certificate, key and CAs from /certs for each TLS handshake, as long as it runs:
 * hack/images/rereading-client with Java's PKIX, and with the same lines.
 *
 * <p>java RereadingClient.java HOST PORT SERVERNAME MILLISECONDS
 */
public final class RereadingClient {
    private static final int TIMEOUT_MS = 60_000;
    private static volatile boolean ending;

    public static void main(String[] args) throws Exception {
        long every = Long.parseLong(args[3]);
        Thread caller = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ending = true;
            try {
                caller.join();
            } catch (InterruptedException e) {
                // it ends anyway
            }
        }));
        int number = 0;
        while (!ending) {
            long began = System.currentTimeMillis();
            String reason = callAgain(args[0], Integer.parseInt(args[1]), args[2]);
            long took = System.currentTimeMillis() - began;
            System.out.printf(Locale.ROOT, "{\"t\": %.3f, \"target\": \"java\", \"n\": %d, \"ok\": %s, \"ms\": %d%s}%n", began / 1e3, number++,
                    reason == null, took, reason == null ? "" : ", \"reason\": \"" + reason + "\"");
            Thread.sleep(Math.max(0, every - took));
        }
        System.out.printf("{\"ended\": %d}%n", number);
    }

    /** Files that went while they were read are read again: of the version that is there now. Null: an answer came. */
    private static String callAgain(String host, int port, String name) {
        for (int tries = 0; ; tries++) {
            Path folder = Path.of("/certs");
            try {
                // All of one version: a kubelet puts a new folder in the place of the one before (atomic_writer.go).
                folder = Files.exists(folder.resolve("..data")) ? folder.resolve("..data").toRealPath() : folder;
                call(folder, host, port, name);
                return null;
            } catch (Exception e) {
                if (Files.exists(folder.resolve("ca.crt")) || tries == 2) {
                    return e.toString().replaceAll("[\"\\\\\\p{Cntrl}]", "'");
                }
            }
        }
    }

    private static void call(Path folder, String host, int port, String name) throws Exception {
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(keys(folder).getKeyManagers(), trust(folder).getTrustManagers(), null);
        Socket plain = new Socket();
        plain.connect(new InetSocketAddress(host, port), TIMEOUT_MS);
        try (SSLSocket socket = (SSLSocket) tls.getSocketFactory().createSocket(plain, name, port, true)) {
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            parameters.setServerNames(List.of(new SNIHostName(name)));
            socket.setSSLParameters(parameters);
            socket.setSoTimeout(TIMEOUT_MS);
            OutputStream out = socket.getOutputStream();
            out.write(("GET / HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            out.flush();
            InputStream in = socket.getInputStream();
            String answer = new String(in.readNBytes(12), StandardCharsets.US_ASCII);
            if (!answer.equals("HTTP/1.1 200")) {
                throw new java.io.IOException("the answer is " + answer);
            }
        }
    }

    private static KeyManagerFactory keys(Path folder) throws Exception {
        String text = Files.readString(folder.resolve("tls.key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        KeyStore store = empty();
        store.setKeyEntry("own", key, new char[0], certificates(folder.resolve("tls.crt")));
        KeyManagerFactory made = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        made.init(store, new char[0]);
        return made;
    }

    private static TrustManagerFactory trust(Path folder) throws Exception {
        KeyStore store = empty();
        int number = 0;
        for (Certificate ca : certificates(folder.resolve("ca.crt"))) {
            store.setCertificateEntry("ca-" + number++, ca);
        }
        TrustManagerFactory made = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        made.init(store);
        return made;
    }

    private static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Certificate[] certificates(Path file) throws Exception {
        try (InputStream in = Files.newInputStream(file)) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
        }
    }
}
